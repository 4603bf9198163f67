// The demo's side channel in Node: one JSON object a line in, one answer a line out.
// See ../python/line_protocol.py for the lines. What an operation does is the driver's.

import { createInterface } from 'node:readline'

/** The client has no public call for this operation. */
export class Unsupported extends Error {}

/**
 * Greet, then answer every line of stdin, one after the other, until it ends.
 * `describe(error)` turns what the client threw into {error, code, message}.
 */
export async function serve(client, version, operations, describe, close) {
  write({ client, version })
  for await (const line of createInterface({ input: process.stdin })) {
    write(await answer(operations, JSON.parse(line), describe))
  }
  await close()
  process.exit(0) // a client's reconnect timers must not outlive the demo
}

async function answer(operations, call, describe) {
  const operation = operations[call.op]
  if (!operation) return { unsupported: `no public call for '${call.op}'` }
  try {
    return { ok: true, result: (await operation(call)) ?? null }
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message }
    return { ok: false, ...describe(error) }
  }
}

function write(message) {
  process.stdout.write(JSON.stringify(message) + '\n')
}
