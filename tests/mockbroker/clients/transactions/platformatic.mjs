// @platformatic/kafka. It initialises a producer when it begins its first transaction.
import { Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const producers = new Map()
let bootstrapBrokers

// The messages of a topic that a new member of a group reads up to a value, and the member.
async function consume (groupId, topic, last, isolationLevel) {
  const consumer = new Consumer({
    clientId: 'reader', groupId, bootstrapBrokers, deserializers: stringDeserializers
  })
  const stream = await consumer.consume({
    topics: [topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false, maxWaitTime: 100,
    isolationLevel
  })
  const messages = []
  for await (const message of stream) {
    messages.push(message)
    if (message.value === last) break
  }
  return { consumer, messages }
}

await serve({
  async connect (bootstrap) { bootstrapBrokers = bootstrap.split(',') },
  async open (name, transactionalId, timeout, group, topic) {
    // Without these ids it sends 0 and 0, with which a broker refuses a second producer.
    const producer = new Producer({
      clientId: name, bootstrapBrokers, transactionalId, idempotent: true, timeout: Number(timeout),
      producerId: -1n, producerEpoch: -1, serializers: stringSerializers
    })
    producers.set(name, { producer, group, topic })
  },
  async begin (name) {
    const made = producers.get(name)
    made.transaction = await made.producer.beginTransaction()
  },
  async send (name, topic, ...values) {
    const messages = values.map(value => ({ topic, value, partition: 0 }))
    await producers.get(name).transaction.send({ messages })
  },
  async move (name, target, last) {
    const made = producers.get(name)
    const { consumer, messages } = await consume(made.group, made.topic, last, 1)
    made.consumer = consumer
    const moved = messages.map(({ value }) => ({ topic: target, value, partition: 0 }))
    await made.transaction.send({ messages: moved })
    await made.transaction.addConsumer(consumer)
    await made.transaction.addOffset(messages.at(-1))
  },
  async commit (name) { await producers.get(name).transaction.commit() },
  async abort (name) { await producers.get(name).transaction.abort() },
  async close (name) {
    const { producer, consumer } = producers.get(name)
    await consumer?.close(true)
    await producer.close(true)
  },
  async read (topic, isolation, last) {
    const group = `readers-${topic}-${isolation}-${last}`
    const { consumer, messages } = await consume(group, topic, last, isolation === 'read_committed' ? 1 : 0)
    await consumer.close(true)
    return messages.map(({ value }) => value)
  }
})
