// @platformatic/kafka: its codecs, a group that grows and shrinks.
import assert from 'node:assert/strict'
import zlib from 'node:zlib'
import { Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const TOPIC = 'foo'
const BASE = 1_700_000_000_000
const PATIENCE_MS = 60_000
const settings = { clientId: 'round-trip', bootstrapBrokers: process.argv.at(-1).split(',') }

async function until (what, done) {
  const deadline = Date.now() + PATIENCE_MS
  while (!await done()) {
    assert(Date.now() < deadline, `in vain: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

async function produce (name, compression) {
  const producer = new Producer({ ...settings, serializers: stringSerializers })
  const values = Array.from({ length: 12 }, (_, i) => `${name}-${i}`)
  const messages = values.map((value, i) => ({
    topic: TOPIC, key: `${i}`, value, partition: i % 4, timestamp: BigInt(BASE + i)
  }))
  await producer.send({ messages, compression, acks: -1 })
  await producer.close()
  return values
}

async function reader () {
  const consumer = new Consumer({
    ...settings, groupId: 'readers', deserializers: stringDeserializers, heartbeatInterval: 200
  })
  const values = []
  const stream = await consumer.consume({
    topics: [TOPIC], mode: 'committed', fallbackMode: 'earliest', autocommit: false, maxWaitTime: 100
  })
  stream.on('data', async message => {
    await message.commit()
    values.push(message.value)
  })
  const assigned = () => (consumer.assignments ?? [])
    .filter(each => each.topic === TOPIC).reduce((count, each) => count + each.partitions.length, 0)
  return { values, assigned, close: () => consumer.close(true) }
}

// Node has zstd since 22.15.
const codecs = ['none', 'gzip', 'snappy', 'lz4', ...(zlib.zstdCompressSync ? ['zstd'] : [])]
const sent = []
for (const codec of codecs) sent.push(...await produce(codec, codec))
const first = await reader()
await until('read everything', () => first.values.length >= sent.length)
assert.deepEqual(first.values.toSorted(), sent.toSorted())
const second = await reader()
await until('share', () => first.assigned() === 2 && second.assigned() === 2)
await second.close()
await until('take over', () => first.assigned() === 4)
await first.close()
const late = await produce('late', 'none')
const third = await reader()
await until('read on', () => third.values.length >= late.length)
assert.deepEqual(third.values.toSorted(), late.toSorted())
await third.close()
console.log('ok', sent.length)
