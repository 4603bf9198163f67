// The adapter protocol in Node: one JSON object a line in, one answer a line out; docs/adapters.md
// has the lines. What a call does is the adapter's.

import { basename } from 'node:path'
import { createInterface } from 'node:readline'

/** The client has no public call for this operation. */
export class Unsupported extends Error {}

/**
 * Greet, then answer every line of stdin, one after the other, until it ends.
 * `describe(error)` turns what the client threw into {error, code, message}.
 */
export async function serve(client, version, { connect, close, operations }, describe) {
  const all = { connect, close, ...operations }
  const capabilities = Object.keys(operations).sort()
  write({ client, version, language: 'node', capabilities })
  for await (const line of createInterface({ input: process.stdin })) {
    write(await answer(all, JSON.parse(line), describe))
  }
  await close()
  process.exit(0) // a client's reconnect timers must not outlive the suite
}

async function answer(operations, call, describe) {
  if (call.op === 'together') {
    return { ok: true, result: await Promise.all(call.calls.map(each => answer(operations, each, describe))) }
  }
  const operation = operations[call.op]
  if (!operation) return { unsupported: `no public call for '${call.op}'` }
  try {
    return { ok: true, result: (await operation(call)) ?? null }
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message }
    return { ok: false, ...describe(error), at: innermost(error) }
  }
}

/** Where it came from: "kafkajs/src/... function", or the name of a file of ours. */
function innermost(error) {
  const line = /^\s+at (?:async )?(\S.*?) \((?!node:)(.+?):\d+:\d+\)$/m.exec(error?.stack ?? '')
  if (!line) return ''
  const [, name, path] = line
  const file = path.includes('node_modules/') ? path.split('node_modules/').pop() : basename(path)
  return `${file} ${name}`
}

/** ['foo-0', 'foo-1'] as [['foo', [0, 1]]]. */
export function byTopic(keys) {
  const found = new Map()
  for (const key of keys) {
    const at = key.lastIndexOf('-')
    const topic = key.slice(0, at)
    if (!found.has(topic)) found.set(topic, [])
    found.get(topic).push(Number(key.slice(at + 1)))
  }
  return [...found]
}

function write(message) {
  process.stdout.write(JSON.stringify(message) + '\n')
}
