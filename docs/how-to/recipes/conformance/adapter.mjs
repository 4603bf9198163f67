// An adapter that drives kafkajs for kspec, with two calls: copy this file, and put your client in the
// place of kafkajs. docs/reference/adapters.md describes the protocol and lists all calls.
//
//   npm install kafkajs
//   kspec run --adapter "node adapter.mjs" --case framing --out report

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { inspect } from 'node:util'
import kafkajs from 'kafkajs'

/** The adapter or the client has no such call or option. */
class Unsupported extends Error {}

/** The client threw `cause`. Any other error is the adapter's own. */
class ClientError extends Error {}

let admin = null

async function clientCall(work) {
  try {
    return await work()
  } catch (cause) {
    throw new ClientError('', { cause })
  }
}

/** Return what the client returned, and the same in the protocol's form. */
async function perform(call) {
  switch (call.op) {
    case 'connect': {
      if (call.sasl) throw new Unsupported('this adapter does not authenticate')
      const kafka = new kafkajs.Kafka({
        brokers: call.bootstrap.split(','),
        clientId: call.client_id,
        connectionTimeout: call.timeout_ms,
        requestTimeout: call.timeout_ms,
        retry: { retries: 2, initialRetryTime: 100 },
        logLevel: kafkajs.logLevel.NOTHING // by default it writes its log to stdout
      })
      admin = kafka.admin()
      return {}
    }
    case 'close':
      await clientCall(async () => admin?.disconnect())
      admin = null
      return {}
    case 'list_topics': {
      const topics = await clientCall(async () => {
        await admin.connect()
        return admin.listTopics()
      })
      return { raw: topics, result: [...topics].sort() }
    }
    case 'describe_cluster': {
      const cluster = await clientCall(async () => {
        await admin.connect()
        return admin.describeCluster()
      })
      const ids = cluster.brokers.map(broker => broker.nodeId).sort((one, other) => one - other)
      return { raw: cluster, result: { brokers: ids, controller: cluster.controller ?? -1 } }
    }
    default:
      throw new Unsupported(`no call for ${call.op}`)
  }
}

function described(error) {
  const code = Number.isInteger(error.code) ? error.code : null // errors of sockets have texts
  return { error: error.name, code, message: error.message }
}

async function answer(call) {
  try {
    const { raw = null, result = null } = await perform(call)
    return { ok: true, result, raw: inspect(raw, { depth: null }) }
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message }
    if (error instanceof ClientError) return { ok: false, ...described(error.cause) }
    return { adapter_error: described(error) }
  }
}

function write(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

const manifest = createRequire(import.meta.url).resolve('kafkajs/package.json')
write({
  client: 'my-client',
  version: JSON.parse(readFileSync(manifest, 'utf8')).version,
  language: 'node',
  capabilities: ['describe_cluster', 'list_topics'],
  options: {
    connectionTimeout: 'timeout_ms', requestTimeout: 'timeout_ms',
    'retry.retries': '2', 'retry.initialRetryTime': '100'
  }
})
for await (const line of createInterface({ input: process.stdin })) write(await answer(JSON.parse(line)))
await answer({ op: 'close' })
process.exit(0) // the client's timers must not keep the process alive
