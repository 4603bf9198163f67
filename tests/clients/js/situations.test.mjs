// The situations of ../situations.txt with kafkajs. The test puts both packages into node_modules.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { withMock } from 'kproto'

const PATIENT = { timeout: 60_000 }
const TOPICS = { topics: ['foo:1:3'] }

const SOON = { groupId: 'g', heartbeatInterval: 100, maxWaitTimeInMs: 100 }

const connect = (mock, t, made) => made.connect().then(() => { t.after(() => made.disconnect()) }).then(() => made)
const kafka = mock => new kafkajs.Kafka({
  brokers: mock.brokers,
  clientId: 'situations',
  logLevel: kafkajs.logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 10 }
})
const producer = (mock, t, options = {}) => connect(mock, t, kafka(mock).producer({ idempotent: true, ...options }))
const send = (from, value) => from.send({ topic: 'foo', messages: [{ value }] })

async function consumer(mock, t, values, options = {}) {
  const made = await connect(mock, t, kafka(mock).consumer({ ...SOON, ...options }))
  await made.subscribe({ topic: 'foo', fromBeginning: true })
  await made.run({ eachMessage: async ({ message }) => { values.push(String(message.value)) } })
  return made
}

async function until(condition) {
  while (!await condition()) await new Promise(resolve => setTimeout(resolve, 20))
}

test('happy path', PATIENT, withMock(TOPICS, async (mock, t) => {
  await send(await producer(mock, t), 'a')
  const values = []
  await consumer(mock, t, values)
  await until(() => values.length)
  assert.deepEqual(values, ['a'])
  assert.equal((await mock.records('foo-0'))[0].value, 'a')
}))

test('lost acknowledgement', PATIENT, withMock({ ...TOPICS, strict_faults: true }, async (mock, t) => {
  await mock.fault({ api: 'Produce', disconnect: 'after', times: 1 })
  await send(await producer(mock, t), 'a')
  assert.equal((await mock.requests('Produce')).length, 2)
  assert.equal((await mock.records('foo-0')).length, 1)
}))

const TRANSACTIONS = { topics: ['foo:1:3', '__transaction_state:1:3'] }

test('fenced producer', PATIENT, withMock(TRANSACTIONS, async (mock, t) => {
  const options = { transactionalId: 't', maxInFlightRequests: 1 }
  const first = await (await producer(mock, t, options)).transaction()
  await send(first, 'a')
  const second = await (await producer(mock, t, options)).transaction()
  await send(second, 'b')
  await assert.rejects(first.commit(), /epoch|fenced/i)
  await second.commit()
  const committed = await mock.records('foo-0', { committed: true })
  assert.deepEqual(committed.map(record => record.value), ['b'])
}))

test('rebalance in mid batch', PATIENT, withMock(TOPICS, async (mock, t) => {
  const sender = await producer(mock, t)
  await send(sender, 'a')
  const values = []
  await consumer(mock, t, values)
  await until(() => values.length === 1)
  const before = await mock.waitForGroup('g', { state: 'Stable', members: 1 })
  await mock.rebalance('g')
  await mock.waitForCount(2, 'SyncGroup')
  await send(sender, 'b')
  await until(() => values.length === 2)
  await until(async () => (await mock.committed('g'))['foo-0']?.offset === 2)
  assert.ok((await mock.groups()).g.generation > before.generation)
}))

test('leader change', PATIENT, withMock(TOPICS, async (mock, t) => {
  const sender = await producer(mock, t)
  await send(sender, 'a')
  const { leader } = (await mock.state()).topics.foo['0']
  await mock.stopBroker(leader)
  await send(sender, 'b')
  assert.notEqual((await mock.state()).topics.foo['0'].leader, leader)
  assert.equal((await mock.records('foo-0')).length, 2)
}))

test('coordinator move', PATIENT, withMock(TOPICS, async (mock, t) => {
  const sender = await producer(mock, t)
  await send(sender, 'a')
  const values = []
  await consumer(mock, t, values)
  await until(async () => (await mock.committed('g'))['foo-0']?.offset === 1)
  const [{ broker_id: from }] = await mock.requests('JoinGroup')
  const to = from % 3 + 1
  await mock.moveCoordinator('group', 'g', to)
  await send(sender, 'b')
  await mock.waitFor('OffsetCommit', { broker: to })
  await until(async () => (await mock.committed('g'))['foo-0'].offset === 2)
}))

test('throttle', PATIENT, withMock({ ...TOPICS, strict_faults: true }, async (mock, t) => {
  await mock.fault({ api: 'Produce', throttle: '200ms', times: 1 })
  const sender = await producer(mock, t)
  await send(sender, 'a')
  await send(sender, 'b')
  const [first, second] = await mock.requests('Produce')
  assert.ok(second.timestamp_ns - first.timestamp_ns > 150e6)
}))

test('unsupported version', PATIENT, withMock({ ...TOPICS, apis: { 45: 'off' } }, async (mock, t) => {
  const admin = await connect(mock, t, kafka(mock).admin())
  const topics = [{ topic: 'foo', partitionAssignment: [{ partition: 0, replicas: [2, 3, 1] }] }]
  await assert.rejects(admin.alterPartitionReassignments({ topics }), /not support/)
  assert.deepEqual(await mock.requests('45'), [])
}))

test('old release', PATIENT, withMock({ ...TOPICS, profile: 'kafka-0.11.0' }, async (mock, t) => {
  await send(await producer(mock, t), 'a')
  const values = []
  await consumer(mock, t, values)
  await until(() => values.length)
  assert.equal((await mock.requests('Produce'))[0].api_version, 3)
}))

test('reassignment watched', PATIENT, withMock({ brokers: 4, topics: ['foo=1,2,3'] }, async (mock, t) => {
  await mock.fault({ api: 'AlterPartitionReassignments', error: 'NOT_CONTROLLER', times: 1 })
  const admin = await connect(mock, t, kafka(mock).admin())
  const topics = [{ topic: 'foo', partitionAssignment: [{ partition: 0, replicas: [2, 3, 4] }] }]
  await admin.alterPartitionReassignments({ topics })
  assert.deepEqual((await mock.state()).topics.foo['0'].adding, [4])
  await mock.joinIsr('foo-0', 4)
  assert.deepEqual((await mock.state()).topics.foo['0'].replicas, [2, 3, 4])
  assert.equal((await mock.requests('AlterPartitionReassignments')).length, 2)
}))

test('poison record', PATIENT, withMock(TOPICS, async (mock, t) => {
  const compressed = { topic: 'foo', compression: kafkajs.CompressionTypes.GZIP, messages: [{ value: 'poison' }] }
  await (await producer(mock, t)).send(compressed)
  await mock.corruptBatch('foo-0', 0, 'codec')
  await mock.append('foo-0', { records: [{ value: 'good' }] })
  const values = []
  const retry = { retries: 0, restartOnFailure: async () => false }
  const made = await connect(mock, t, kafka(mock).consumer({ ...SOON, retry }))
  const crashed = new Promise(resolve => made.on(made.events.CRASH, ({ payload }) => resolve(payload.error)))
  await made.subscribe({ topic: 'foo', fromBeginning: true })
  await made.run({ eachMessage: async ({ message }) => { values.push(String(message.value)) } })
  assert.ok(await crashed)
  await made.disconnect()
  await mock.waitForGroup('g', { state: 'Empty' })
  const admin = await connect(mock, t, kafka(mock).admin())
  await admin.setOffsets({ groupId: 'g', topic: 'foo', partitions: [{ partition: 0, offset: '1' }] })
  await consumer(mock, t, values)
  await until(() => values.length)
  assert.deepEqual(values, ['good'])
}))

test('fifty in parallel', PATIENT, async t => {
  const each = withMock(TOPICS, async mock => {
    await send(await producer(mock, t), 'a')
    assert.equal((await mock.records('foo-0')).length, 1)
  })
  await Promise.all(Array.from({ length: 50 }, () => each()))
})
