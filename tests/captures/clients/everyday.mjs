// Everyday traffic of kafkajs or @platformatic/kafka: CLIENT BOOTSTRAP PREFIX.
// One line of JSON on standard output at the end, as the Python programs have it.

import { readFileSync } from 'node:fs'

const [client, bootstrap, prefix] = process.argv.slice(2)
const records = 12
const value = number => `value ${number}: ` + 'so it goes, '.repeat(12)
const failed = {}

async function attempt(what, act) {
  try {
    await act()
  } catch (error) {
    failed[what] = String(error)
  }
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

async function kafkajs(topic) {
  const { Kafka, CompressionTypes, logLevel } = await import('kafkajs')
  const kafka = new Kafka({
    clientId: 'kafkajs', brokers: bootstrap.split(','), logLevel: logLevel.NOTHING
  })
  const messages = Array.from({ length: records }, (_, n) => ({ key: `key-${n}`, value: value(n) }))
  const admin = kafka.admin()
  await admin.connect()
  await attempt('create', () =>
    admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 2 }] }))
  const producer = kafka.producer()
  await producer.connect()
  await attempt('none', () => producer.send({ topic, messages }))
  await attempt('gzip', () =>
    producer.send({ topic, messages, compression: CompressionTypes.GZIP }))
  await producer.disconnect()
  await attempt('transactions', async () => {
    const tx = kafka.producer({ transactionalId: `${topic}-tx`, maxInFlightRequests: 1, idempotent: true })
    await tx.connect()
    for (const end of ['commit', 'abort']) {
      const transaction = await tx.transaction()
      await transaction.send({ topic, messages: messages.slice(0, 1) })
      await transaction[end]()
    }
    await tx.disconnect()
  })
  await attempt('consume', async () => {
    const consumer = kafka.consumer({ groupId: `${topic}-group`, maxWaitTimeInMs: 100 })
    let found = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({ eachMessage: async () => { found++ } })
    for (let i = 0; i < 40 && found < 2 * records; i++) await pause(250)
    await consumer.disconnect()
  })
  await attempt('offsets', () => admin.fetchTopicOffsets(topic))
  await attempt('groups', () => admin.listGroups())
  await attempt('group', () => admin.describeGroups([`${topic}-group`]))
  await attempt('configs', () =>
    admin.describeConfigs({ includeSynonyms: true, resources: [{ type: 2, name: topic }] }))
  await admin.disconnect()
}

async function platformatic(topic) {
  const { Admin, Producer, Consumer, stringSerializers, stringDeserializers } =
    await import('@platformatic/kafka')
  const common = { clientId: 'platformatic', bootstrapBrokers: bootstrap.split(',') }
  const admin = new Admin(common)
  await attempt('create', () => admin.createTopics({ topics: [topic], partitions: 2, replicas: 2 }))
  for (const compression of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
    await attempt(compression, async () => {
      const producer = new Producer({ ...common, serializers: stringSerializers, compression })
      const messages = Array.from({ length: records }, (_, n) => ({
        topic, key: `key-${n}`, value: value(n), headers: { codec: compression }
      }))
      try {
        await producer.send({ messages })
      } finally {
        await producer.close()
      }
    })
  }
  await attempt('consume', async () => {
    const consumer = new Consumer({
      ...common, groupId: `${topic}-group`, deserializers: stringDeserializers, maxWaitTime: 100
    })
    const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: true })
    let found = 0
    stream.on('data', () => { found++ })
    for (let i = 0; i < 40 && found < 3 * records; i++) await pause(250)
    await stream.close()
    await consumer.close(true)
  })
  await attempt('groups', () => admin.listGroups())
  await admin.close()
}

const names = { kafkajs: [kafkajs, 'kafkajs'], platformatic: [platformatic, '@platformatic/kafka'] }
const [run, name] = names[client]
await run(`${prefix}-${client}`)
const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`))
console.log(JSON.stringify({ client: name, version, failed }))
process.exit(0)
