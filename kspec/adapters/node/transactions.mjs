// The calls about transactions, for a client in which a transaction is an object with `commit` and `abort`.
// It flushes nothing: an application waits for what it sent before it ends the transaction.

import { clientCall, Returned } from './lines.mjs'

export class Transactions {
  #current = undefined
  #sent = []

  /** `begin` gives a new transaction; `sendOffsets(transaction, call)` makes offsets a part of one. */
  constructor(begin, sendOffsets) {
    this.operations = {
      begin_transaction: async () => {
        const begun = begin()
        this.#current ??= begun
        await begun
        this.#current = begun
        return new Returned(undefined, null)
      },
      send_offsets: async call => {
        await sendOffsets(await this.current(), call)
        return new Returned(undefined, null)
      },
      commit_transaction: () => this.#end('commit', sent => Promise.all(sent)),
      abort_transaction: () => this.#end('abort', sent => Promise.allSettled(sent))
    }
  }

  /**
   * The last one that has begun, also after its end: the client refuses to go on with it. If none has begun,
   * the error of the first beginning is thrown, or undefined given.
   */
  current() {
    return this.#current
  }

  /** `sending` is a promise that nobody waits for until the transaction ends. */
  sends(sending) {
    sending.catch(() => {})
    this.#sent.push(sending)
  }

  clear() {
    this.#current = undefined
    this.#sent = []
  }

  async #end(how, sentAll) {
    const transaction = await this.current()
    const sent = this.#sent.splice(0)
    await clientCall(async () => {
      await sentAll(sent)
      await transaction[how]()
    })
    return new Returned(undefined, null)
  }
}
