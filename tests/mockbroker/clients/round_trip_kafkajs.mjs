// kafkajs: its codecs, a group that grows and shrinks, offsets by time.
import assert from 'node:assert/strict'
import kafkajs from 'kafkajs'

const { CompressionTypes, Kafka, logLevel } = kafkajs
const TOPIC = 'foo'
const BASE = 1_700_000_000_000
const PATIENCE_MS = 60_000
const kafka = new Kafka({ brokers: process.argv.at(-1).split(','), logLevel: logLevel.ERROR })

async function until (what, done) {
  const deadline = Date.now() + PATIENCE_MS
  while (!await done()) {
    assert(Date.now() < deadline, `in vain: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

async function produce (name, compression) {
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  const values = Array.from({ length: 12 }, (_, i) => `${name}-${i}`)
  const messages = values.map((value, i) => ({
    value, partition: i % 4, timestamp: String(BASE + i)
  }))
  await producer.send({ topic: TOPIC, compression, acks: -1, messages })
  await producer.disconnect()
  return values
}

async function reader () {
  const consumer = kafka.consumer({ groupId: 'readers', heartbeatInterval: 200, maxWaitTimeInMs: 100 })
  const values = []
  let assigned = 0
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    assigned = (payload.memberAssignment[TOPIC] ?? []).length
  })
  await consumer.connect()
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true })
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ message }) => { values.push(message.value.toString()) }
  })
  return { values, assigned: () => assigned, close: () => consumer.disconnect() }
}

const sent = [...await produce('none', CompressionTypes.None), ...await produce('gzip', CompressionTypes.GZIP)]
const first = await reader()
await until('read everything', () => first.values.length >= sent.length)
assert.deepEqual(first.values.toSorted(), sent.toSorted())
const second = await reader()
await until('share', () => first.assigned() === 2 && second.assigned() === 2)
await second.close()
await until('take over', () => first.assigned() === 4)
await first.close()
const late = await produce('late', CompressionTypes.None)
const third = await reader()
await until('read on', () => third.values.length >= late.length)
assert.deepEqual(third.values.toSorted(), late.toSorted())
await third.close()
const admin = kafka.admin()
await admin.connect()
for (const { offset } of await admin.fetchTopicOffsetsByTimestamp(TOPIC, BASE + 4)) {
  assert.equal(offset, '1')
}
await admin.disconnect()
console.log(`ok ${sent.length}`)
