// kafkajs. A consumer without a group is not among what it offers.
import kafkajs from 'kafkajs'

const { Kafka, logLevel } = kafkajs
const producers = new Map()
let kafka

// The records of a topic that a new member of a group reads up to a value, and the member.
async function consume (groupId, topic, last, readUncommitted) {
  const consumer = kafka.consumer({ groupId, readUncommitted, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const records = []
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        records.push({ value: message.value.toString(), offset: message.offset })
        if (message.value.toString() === last) resolve()
      }
    }).catch(reject)
  })
  return { consumer, records }
}

await serve({
  async connect (bootstrap) {
    kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING, retry: { retries: 8 } })
  },
  async open (name, transactionalId, timeout, group, topic) {
    const producer = kafka.producer({
      transactionalId, transactionTimeout: Number(timeout), idempotent: true, maxInFlightRequests: 1
    })
    await producer.connect()
    producers.set(name, { producer, group, topic })
  },
  async begin (name) {
    const made = producers.get(name)
    made.transaction = await made.producer.transaction()
  },
  async send (name, topic, ...values) {
    const messages = values.map(value => ({ value, partition: 0 }))
    await producers.get(name).transaction.send({ topic, messages })
  },
  async move (name, target, last) {
    const made = producers.get(name)
    const { consumer, records } = await consume(made.group, made.topic, last, false)
    made.consumer = consumer
    const messages = records.map(({ value }) => ({ value, partition: 0 }))
    await made.transaction.send({ topic: target, messages })
    const offset = String(BigInt(records.at(-1).offset) + 1n)
    const topics = [{ topic: made.topic, partitions: [{ partition: 0, offset }] }]
    await made.transaction.sendOffsets({ consumerGroupId: made.group, topics })
  },
  async commit (name) { await producers.get(name).transaction.commit() },
  async abort (name) { await producers.get(name).transaction.abort() },
  async close (name) {
    const { producer, consumer } = producers.get(name)
    await consumer?.disconnect()
    await producer.disconnect()
  },
  async read (topic, isolation, last) {
    const group = `readers-${topic}-${isolation}-${last}`
    const { consumer, records } = await consume(group, topic, last, isolation === 'read_uncommitted')
    await consumer.disconnect()
    return records.map(({ value }) => value)
  }
})
