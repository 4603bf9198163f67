// The adapter protocol in Node: one JSON object per line in, one answer per line out; docs/reference/adapters.md
// documents it. An adapter implements the calls and calls its client inside `clientCall(() => ...)`:
// an error thrown there is the client's answer, any other is an error of the adapter.

import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { inspect } from 'node:util'

/** The client has no public call for this operation. */
export class Unsupported extends Error {}

/** What the client returned, and the equivalent result of the adapter protocol. */
export class Returned {
  constructor(raw, result) {
    this.raw = raw
    this.result = result
  }
}

/** The client threw `error`. */
class Thrown extends Error {
  constructor(error, records = []) {
    super(String(error), { cause: error })
    this.error = error
    this.records = records
  }
}

/** Encloses each call of the client and nothing else. */
export async function clientCall(work) {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Unsupported ? error : new Thrown(error)
  }
}

/**
 * Write the greeting, then answer every line of stdin in order.
 * `code(error)` returns Kafka's code of a client's error, if it shows one, `message(error)` its text,
 * and `named(error, call)` the partitions or topics that the error of a call names, each with its error.
 */
export async function serve(client, version, adapter) {
  const { connect, close, operations, connects = [], records = [] } = adapter
  const { options = {}, rawCalls = {}, named = () => ({}) } = adapter
  const described = error => describe(error, adapter)
  const all = { connect, close, ...operations }
  const capabilities = Object.keys(operations).sort()
  const greeting = { client, version, language: 'node', capabilities }
  write({ ...greeting, connect: connects, records, options: inText(options), raw_calls: rawCalls })
  for await (const line of createInterface({ input: process.stdin })) {
    write(await answer(all, JSON.parse(line), described, named))
  }
  await close()
  process.exit(0) // a client's reconnect timers must not outlive the suite
}

async function answer(operations, call, described, named) {
  try {
    if (call.op === 'together') {
      const answers = call.calls.map(each => answer(operations, each, described, named))
      return { ok: true, result: await Promise.all(answers) }
    }
    const operation = operations[call.op]
    if (!operation) return { unsupported: `no public call for '${call.op}'` }
    const { raw, result } = (await operation(call)) ?? {}
    return { ok: true, result: result ?? null, raw: whole(raw) }
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message }
    if (!(error instanceof Thrown)) return { adapter_error: describe(error) }
    // The outcomes of produce are those of records, which no error names.
    const names = call.op === 'produce' ? {} : named(error.error, call)
    const partitions = Object.entries(names).map(([key, one]) => [key, described(one)])
    return {
      ok: false,
      ...described(error.error),
      ...(error.records.length ? { records: error.records } : {}),
      ...(partitions.length ? { partitions: Object.fromEntries(partitions) } : {})
    }
  }
}

/** The value as Node prints it in full. */
function whole(value) {
  return inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, breakLength: Infinity })
}

const DEEPEST = 8

/** An error: its class, Kafka's code if it shows one, its message, and the errors it wraps. */
export function describe(error, adapter = {}, depth = 0) {
  if (!(error instanceof Error)) return { error: typeof error, code: null, message: whole(error) }
  const within = depth < DEEPEST
  const wrapped = within && Array.isArray(error.errors) ? error.errors : []
  const { code = () => null, message = one => one.message } = adapter
  const number = code(error)
  const each = one => describe(one, adapter, depth + 1)
  return {
    error: error.constructor?.name || error.name,
    code: Number.isInteger(number) ? number : null,
    message: String(message(error) ?? ''),
    at: innermost(error),
    ...(within && error.cause ? { cause: each(error.cause) } : {}),
    ...(wrapped.length ? { errors: wrapped.map(each) } : {})
  }
}

/** Its origin: "kafkajs/src/... function", or the name of one of our files. */
function innermost(error) {
  const line = /^\s+at (?:async )?(\S.*?) \((?!node:)(.+?):\d+:\d+\)$/m.exec(error?.stack ?? '')
  if (!line) return ''
  const [, name, path] = line
  const file = path.includes('node_modules/') ? path.split('node_modules/').pop() : basename(path)
  return `${file} ${name}`
}

/** {a: 1, b: {c: 2}} as {a: '1', 'b.c': '2'}. */
function inText(options, prefix = '') {
  return Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) =>
      value !== null && typeof value === 'object'
        ? Object.entries(inText(value, `${prefix}${name}.`))
        : [[prefix + name, String(value)]]
    )
  )
}

/** ['foo-0', 'foo-1'] as [['foo', [0, 1]]]. */
export function byTopic(keys) {
  const found = new Map()
  for (const key of keys) {
    const at = key.lastIndexOf('-')
    const topic = key.slice(0, at)
    const index = key.slice(at + 1)
    if (at < 0 || !/^\d+$/.test(index)) throw new Error(`'${key}' is not a partition`)
    if (!found.has(topic)) found.set(topic, [])
    found.get(topic).push(Number(index))
  }
  return [...found]
}

/** How long `produce` waits for outcomes: less than the 15 seconds after which the suite ends an adapter. */
const LONGEST_OUTCOME = 13000

/** What `sending` gives; undefined if it gives nothing in the time that `connect` leaves for outcomes. */
export function inTime(sending, connect) {
  const delivery = connect.producer?.delivery_timeout_ms ?? 0
  const limit = Math.min(delivery + connect.timeout_ms + 4000, LONGEST_OUTCOME)
  let timer
  const over = new Promise(resolve => {
    timer = setTimeout(resolve, limit)
  })
  return Promise.race([sending, over]).finally(() => clearTimeout(timer))
}

/** Throws Unsupported for an option that is not among `names`. */
export function checkOptions(given, names) {
  const missing = Object.keys(given).filter(name => !names.includes(name))
  if (missing.length) throw new Unsupported(`the client has no option for ${missing.join(', ')}`)
}

/** A key or a value as text, or its bytes in hex if it is not UTF-8. */
export function textOf(data) {
  if (data === null || data === undefined) return null
  if (!Buffer.isBuffer(data)) return String(data)
  const text = data.toString('utf8')
  return Buffer.from(text, 'utf8').equals(data) ? text : { hex: data.toString('hex') }
}

/**
 * The records and errors that a consumer pushes, for `poll`: it ends when there are as many records, at
 * an error, or when its time is over. An error that the client reports while it goes on does not end it,
 * and is its error only if the records did not come.
 */
export class Inbox {
  records = []
  failed = undefined
  reported = undefined
  arrived = () => {}

  add(record) {
    this.records.push(record)
    this.arrived()
  }

  /** The client reports an error and stops. */
  fail(error) {
    this.failed ??= error
    this.arrived()
  }

  /** The client reports an error and goes on. */
  report(error) {
    this.reported ??= error
  }

  async poll(count, ms) {
    const ends = Date.now() + ms
    while (this.records.length < count && !this.failed && Date.now() < ends) {
      let timer
      await new Promise(resolve => {
        this.arrived = resolve
        timer = setTimeout(resolve, ends - Date.now())
      })
      clearTimeout(timer)
    }
    const found = this.records.splice(0)
    const error = this.failed ?? (found.length < count ? this.reported : undefined)
    this.failed = this.reported = undefined
    if (error) throw new Thrown(error, found)
    return new Returned(found, found)
  }
}

const PERMISSIONS = { any: 1, deny: 2, allow: 3 }
const OPERATIONS = { any: 1, all: 2, read: 3, write: 4, create: 5, delete: 6, alter: 7, describe: 8 }
const ACL_KINDS = { any: 1, topic: 2, group: 3 }
const LITERAL = 3

const nameIn = (table, number) => Object.keys(table).find(name => table[name] === number) ?? String(number)

/** An access rule, such as 'allow User:alice read topic:foo', with the protocol's numbers. */
export function ruleParts(rule) {
  const [permission, principal, operation, resource] = rule.split(' ')
  const [kind, resourceName] = resource.split(':')
  return {
    resourceType: ACL_KINDS[kind],
    resourceName,
    resourcePatternType: LITERAL,
    principal,
    host: '*',
    operation: OPERATIONS[operation],
    permissionType: PERMISSIONS[permission]
  }
}

/** A filter of access rules, in which each part may be 'any': a name that is any is `none`. */
export function filterParts(rule, none) {
  const { principal, resourceName, ...parts } = ruleParts(rule)
  return { ...parts, resourceName: resourceName || none, principal: principal === 'any' ? none : principal, host: none }
}

/** An access rule that the client returned, as text. */
function ruleText({ permissionType, principal, operation, resourceType, resourceName }) {
  const [permission, verb] = [nameIn(PERMISSIONS, permissionType), nameIn(OPERATIONS, operation)]
  return `${permission} ${principal} ${verb} ${nameIn(ACL_KINDS, resourceType)}:${resourceName}`
}

/** The rules of DescribeAcls, which come by resource, as texts. */
export function rulesOf(resources) {
  return ascending(elements(resources).flatMap(each => elements(each.acls).map(acl => ruleText({ ...each, ...acl }))))
}

/** The elements of an array that the client returned; none if it is not an array. */
export function elements(value) {
  return Array.isArray(value) ? value : []
}

/** Sorts ascending, whatever types the client returned. */
export function ascending(values) {
  return [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
}

function write(message) {
  process.stdout.write(JSON.stringify(message) + '\n')
}
