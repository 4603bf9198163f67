// A Node.js test against a mock Kafka cluster: copy this file and change the test at its end.
//
//   pip install .                       # in a checkout of kproto: mockbroker, on PATH
//   npm install kafkajs                 # the client shown here
//   node --test mock.test.mjs

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import kafkajs from 'kafkajs'

/** Start a cluster. It ends with `stop`, and with this process in any case. */
async function serve(...options) {
  const child = spawn(
    'mockbroker',
    ['serve', '--control', '127.0.0.1:0', '--exit-with-parent', ...options],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const lines = createInterface({ input: child.stdout })
  // The first line comes when every broker listens.
  const first = await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(([code]) => { throw new Error(`mockbroker ended with ${code}`) }),
    once(child, 'error').then(([error]) => { throw error })
  ])
  const { bootstrap, control } = JSON.parse(first[0])

  async function ask(method, path, body) {
    const response = await fetch(control + path, {
      method,
      headers: { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body)
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(`${method} ${path}: ${answer.error}`)
    return answer
  }

  async function stop() {
    child.kill('SIGINT')
    await once(child, 'exit')
  }

  return { brokers: bootstrap.split(','), ask, stop }
}

test('a reassignment, and a controller that has moved', { timeout: 60_000 }, async t => {
  const mock = await serve('--brokers', '4', '--topic', 'foo=1,2,3')
  t.after(() => mock.stop())
  const admin = new kafkajs.Kafka({
    clientId: 'recipe',
    brokers: mock.brokers,
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 3, initialRetryTime: 50 }
  }).admin()
  await admin.connect()
  t.after(() => admin.disconnect())

  // The first time the broker says that the controller has moved.
  await mock.ask('POST', '/faults', {
    name: 'moved', api: 'AlterPartitionReassignments', error: 'NOT_CONTROLLER', times: 1
  })
  await admin.alterPartitionReassignments({
    topics: [{ topic: 'foo', partitionAssignment: [{ partition: 0, replicas: [2, 3, 4] }] }],
    timeout: 5000
  })

  // Nothing goes on until the test says so: broker 4 catches up, and the reassignment is done.
  await mock.ask('POST', '/join-isr', { partition: 'foo-0', broker: 4 })
  const state = await mock.ask('GET', '/state')
  assert.deepEqual(state.topics.foo[0].replicas, [2, 3, 4])
  assert.deepEqual(state.topics.foo[0].adding, [])

  // What the client said on the wire: it was refused once, and tried again.
  await mock.ask('GET', '/faults/moved/wait?hits=1')
  const said = await mock.ask('GET', '/journal?api=45&direction=request&client_id=recipe')
  assert.equal(said.length, 2)
  assert.deepEqual(said[1].body.topics[0].partitions[0].replicas, [2, 3, 4])
})
