// Mock Kafka clusters for tests with node:test, vitest or jest: a cluster per test, which any client
// connects to, and which the test disturbs and inspects.
//
//   test('a retry', withMock({ topics: ['foo:1:3'], strict_faults: true }, async mock => {
//     await mock.fault({ api: 'Produce', disconnect: 'after', times: 1 })
//     ...                                                    // produces to mock.brokers
//     assert.equal((await mock.requests('Produce')).length, 2)
//   }))
//
// The first cluster of a process starts one server, the command mockbroker, which ends with the
// process, however that ends.

const childProcess = require('node:child_process')
const { once } = require('node:events')
const { createInterface } = require('node:readline')

const { OPERATIONS } = require('./operations.cjs')

const INSTALL = "uv tool install 'kproto[mock] @ git+https://github.com/kproto/kproto'"
const JOURNAL_LINES = 200
const SERVER = Symbol.for('kproto.server')

/** An answer of the server that is not a success. */
class RefusedError extends Error {
  constructor(status, problem) {
    super(`mockbroker: ${problem} (${status})`)
    this.name = 'RefusedError'
    this.status = status
  }
}

async function answer(url, options) {
  try {
    return await fetch(url, options)
  } catch (error) {
    const reason = error.cause?.code ?? error.cause?.message ?? error.message
    throw new Error(`mockbroker does not answer at ${new URL(url).origin} (${reason}); has it been killed?`)
  }
}

async function request(base, method, path, body, accept = 'application/json') {
  const token = process.env.MOCKBROKER_TOKEN
  const response = await answer(base + path, {
    method,
    headers: {
      'Content-Type': 'application/json',
      Accept: accept,
      ...(token ? { Authorization: `Bearer ${token}` } : {})
    },
    body: body === undefined ? undefined : JSON.stringify(body)
  })
  const text = await response.text()
  if (!response.ok) {
    let problem = text
    try {
      problem = JSON.parse(text).error
    } catch {}
    throw new RefusedError(response.status, problem)
  }
  return accept === 'application/json' ? JSON.parse(text) : text
}

const query = filters => new URLSearchParams(
  Object.entries(filters).filter(([, value]) => value !== undefined).map(([name, value]) => [name, String(value)])
).toString()

/**
 * The URL of a control port, of a server that runs already or of one that ends with this process.
 * Kept at a module of Node.js: jest loads this one again for each file of tests.
 */
function server() {
  childProcess[SERVER] ??= startServer()
  return childProcess[SERVER]
}

async function startServer() {
  const running = process.env.KPROTO_MOCKBROKER_URL
  if (running) return running.replace(/\/$/, '')
  const command = process.env.KPROTO_MOCKBROKER || 'mockbroker'
  const child = childProcess.spawn(
    command,
    ['serve', '--no-cluster', '--control', '127.0.0.1:0', '--exit-on-stdin-eof'],
    { stdio: ['pipe', 'pipe', 'inherit'] }
  )
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'exit').then(
    ([code]) => {
      throw new Error(`${command} did not start: it ended with ${code}`)
    },
    error => { // once() rejects when the child has an error
      if (error.code !== 'ENOENT' || process.env.KPROTO_MOCKBROKER) throw error
      throw new Error(
        'there is no mockbroker on PATH, in KPROTO_MOCKBROKER or at KPROTO_MOCKBROKER_URL; ' +
        `install it: ${INSTALL}`)
    })
  const [first] = await Promise.race([once(lines, 'line'), ended])
  ended.catch(() => {}) // it ends some day, which the requests after that report
  // The server must not keep this process running.
  for (const each of [child, child.stdin, child.stdout]) each.unref()
  return JSON.parse(first).control
}

/** A running cluster. */
class Mock {
  #base

  constructor(base, cluster) {
    this.#base = base
    this.cluster = cluster
    this.bootstrap = cluster.bootstrap
    this.brokers = cluster.bootstrap.split(',')
  }

  /** Stop the cluster. Throws for fault rules that had to be hit and were not. */
  async stop() {
    const { problems } = await request(this.#base, 'DELETE', '')
    if (problems.length) throw new Error(problems.join('; '))
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop()
  }

  async fault(rule) {
    await request(this.#base, 'POST', '/faults', { faults: [rule] })
  }

  async rules() {
    return (await request(this.#base, 'GET', '/faults')).faults
  }

  state() {
    return request(this.#base, 'GET', '/state')
  }

  requests(api, filters = {}) {
    return this.journal({ direction: 'request', api, ...filters })
  }

  journal(filters = {}) {
    return request(this.#base, 'GET', `/journal?${query(filters)}`)
  }

  journalText() {
    return request(this.#base, 'GET', `/journal?last=${JOURNAL_LINES}`, undefined, 'text/plain')
  }

  async waitFor(api, filters = {}) {
    return (await this.waitForCount(1, api, filters))[0]
  }

  waitForCount(count, api, filters = {}) {
    return request(this.#base, 'GET', `/journal/wait?${query({ count, api, timeout: '30s', ...filters })}`)
  }

  async records(partition, { committed = false } = {}) {
    const path = `/logs/${encodeURIComponent(partition)}/records?${query({ max: 10000, committed })}`
    return (await request(this.#base, 'GET', path)).records
  }

  groups() {
    return request(this.#base, 'GET', '/groups')
  }

  waitForGroup(group, wanted = {}) {
    const path = `/groups/${encodeURIComponent(group)}/wait?${query({ timeout: '30s', ...wanted })}`
    return request(this.#base, 'GET', path)
  }

  committed(group) {
    return request(this.#base, 'GET', `/offsets/${encodeURIComponent(group)}`)
  }

  async carryOut(operation, body) {
    return (await request(this.#base, 'POST', `/${operation}`, body)).actions
  }
}

for (const [method, [operation, ...names]] of Object.entries(OPERATIONS)) {
  Mock.prototype[method] = function (...values) {
    const given = names.map((name, at) => [name, values[at]])
    return this.carryOut(operation, Object.fromEntries(given.filter(([, value]) => value !== undefined)))
  }
}

/** Start a cluster with these options of `POST /clusters`. */
async function start(options = {}) {
  const clusters = `${await server()}/clusters`
  const cluster = await request(clusters, 'POST', '?timeout=1m', options)
  return new Mock(`${clusters}/${cluster.id}`, cluster)
}

/** A test function that runs `body` with a cluster of its own. If it throws, the traffic is shown. */
function withMock(options, body) {
  // Without a declared parameter, or jest would expect a call of it.
  return async (...context) => {
    const mock = await start(options)
    let failed = true
    try {
      await body(mock, ...context)
      failed = false
    } finally {
      if (failed) {
        const journal = await mock.journalText().catch(error => error.message)
        console.error(`the journal of the mock cluster:\n${journal}`)
      }
      await mock.stop().catch(error => {
        if (!failed) throw error
      })
    }
  }
}

module.exports = { Mock, RefusedError, start, withMock }
