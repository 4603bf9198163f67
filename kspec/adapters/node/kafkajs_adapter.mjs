// Drives kafkajs by the protocol of docs/reference/adapters.md.

import { createRequire } from 'node:module'
import {
  ascending, byTopic, checkOptions, clientCall, elements, Inbox, inTime, Returned, serve, textOf, Unsupported
} from './lines.mjs'
import { administration, namedItems } from './kafkajs_admin.mjs'
import { Transactions } from './transactions.mjs'

const require = createRequire(import.meta.url)
const { CompressionTypes, Kafka, logLevel, PartitionAssigners } = require('kafkajs')
const { version } = require('kafkajs/package.json')

let admin
let timeout
let kafka
let connection
let producer
let consumer
let inbox
let polled
let assigned

/** Clients that were told to connect, each with its promise. */
const connecting = new WeakMap()

const PRODUCER_OPTIONS = [
  'acks', 'idempotence', 'compression', 'linger_ms', 'max_in_flight', 'delivery_timeout_ms',
  'metadata_age_ms', 'transactional_id', 'transaction_timeout_ms'
] // a call is a batch, and a delivery takes as long as its retries
const CONSUMER_OPTIONS = [
  'group', 'offset_reset', 'isolation', 'max_wait_ms', 'partition_max_bytes', 'rack', 'protocol',
  'session_timeout_ms', 'heartbeat_ms', 'assignors', 'metadata_age_ms'
]
const DATA_RETRY = { retries: 3, initialRetryTime: 100 }
const CONSUMER_RETRIES = 5 // its default
const TRANSACTIONAL = { idempotent: true, maxInFlightRequests: 1 } // as its documentation demands

/** Options that differ from its defaults. */
const options = timeout => ({
  connectionTimeout: timeout,
  authenticationTimeout: timeout,
  requestTimeout: timeout,
  logLevel: logLevel.NOTHING,
  retry: { retries: 1, initialRetryTime: 50 }
})

const transactions = new Transactions(
  async () => {
    const producer = await readyProducer()
    return clientCall(() => producer.transaction())
  },
  (transaction, { offsets }) => {
    const topics = byTopic(Object.keys(offsets)).map(([topic, indexes]) => ({
      topic,
      partitions: indexes.map(partition => ({ partition, offset: String(offsets[`${topic}-${partition}`]) }))
    }))
    const consumerGroupId = connection.consumer?.group
    return clientCall(() => transaction.sendOffsets({ consumerGroupId, topics }))
  }
)

function connect(call) {
  timeout = call.timeout_ms
  const sasl = call.sasl && {
    mechanism: call.sasl.mechanism.toLowerCase(),
    username: call.sasl.username,
    password: call.sasl.password
  }
  return clientCall(() => {
    connection = call
    const common = {
      clientId: call.client_id,
      brokers: call.bootstrap.split(','),
      ...options(timeout),
      ...(sasl ? { sasl } : {})
    }
    kafka = new Kafka({ ...common, retry: DATA_RETRY }) // for producers and consumers
    admin = new Kafka(common).admin()
  })
}

/** Connect `client` if it is not. If connecting fails, the next call tries again, like an application. */
async function connects(client) {
  if (!connecting.has(client)) connecting.set(client, client.connect())
  try {
    await connecting.get(client)
  } catch (error) {
    connecting.delete(client)
    throw error
  }
  return client
}

const asked = work => clientCall(async () => work(await connects(admin)))

/** The producer, made by the first call of it and connected. */
async function readyProducer() {
  if (!producer) {
    const given = connection.producer ?? {}
    checkOptions(given, PRODUCER_OPTIONS)
    const { idempotence, max_in_flight: maxInFlightRequests, transactional_id: transactionalId } = given
    const { transaction_timeout_ms: transactionTimeout } = given
    producer = await clientCall(() =>
      kafka.producer({
        ...metadataAge(given),
        ...(idempotence === undefined ? {} : { idempotent: idempotence }),
        ...(maxInFlightRequests === undefined ? {} : { maxInFlightRequests }),
        ...(transactionalId === undefined ? {} : { transactionalId, ...TRANSACTIONAL }),
        ...(transactionTimeout === undefined ? {} : { transactionTimeout })
      })
    )
  }
  return clientCall(() => connects(producer))
}

/** Headers as the client takes them: a value, or a list of the values of a name. */
function byName(headers) {
  const found = {}
  for (const [name, value] of headers) (found[name] ??= []).push(value)
  return Object.fromEntries(
    Object.entries(found).map(([name, values]) => [name, values.length === 1 ? values[0] : values])
  )
}

/** A function that sends `records` within the transaction, if there is one. */
async function sendBatch(records) {
  const to = (await transactions.current()) ?? (await readyProducer())
  const { acks, compression } = connection.producer ?? {}
  const topics = new Map()
  for (const { topic, partition, key = null, value = null, headers } of records) {
    if (!topics.has(topic)) topics.set(topic, [])
    topics.get(topic).push({
      key,
      value,
      ...(headers === undefined ? {} : { headers: byName(headers) }),
      ...(partition === undefined ? {} : { partition })
    })
  }
  return () =>
    to.sendBatch({
      topicMessages: [...topics].map(([topic, messages]) => ({ topic, messages })),
      timeout,
      ...(acks === undefined ? {} : { acks: acks === 'all' ? -1 : acks }),
      ...(compression ? { compression: CompressionTypes[COMPRESSIONS[compression]] } : {})
    })
}

async function close() {
  await producer?.disconnect().catch(() => {})
  producer = undefined
  transactions.clear()
  inbox = undefined
  await consumer?.disconnect().catch(() => {})
  consumer = undefined
  const closing = admin
  admin = undefined
  await closing?.disconnect().catch(() => {}) // its state may not allow a clean close
}

const operations = {
  ...administration(asked, () => timeout),

  async describe_cluster() {
    const cluster = await asked(admin => admin.describeCluster())
    const brokers = ascending(elements(cluster?.brokers).map(broker => broker?.nodeId))
    return new Returned(cluster, { brokers, controller: cluster?.controller ?? -1 })
  },

  async describe_topics({ topics }) {
    const metadata = await asked(admin => admin.fetchTopicMetadata({ topics }))
    const found = {}
    for (const topic of elements(metadata?.topics)) {
      const partitions = (found[topic?.name] = {})
      for (const row of elements(topic?.partitions)) {
        const { partitionId, leader, replicas, isr } = row ?? {}
        partitions[partitionId] = { leader, replicas, isr }
      }
    }
    return new Returned(metadata, found)
  },

  async list_topics() {
    const names = await asked(admin => admin.listTopics())
    return new Returned(names, ascending(elements(names)))
  },

  /** Returns true, or false if all of them exist already; throws any other failure. */
  async create_topics({ topics, validate_only: validateOnly = false }) {
    const wanted = Object.entries(topics).map(([topic, each]) => ({
      topic,
      numPartitions: each.partitions ?? 1,
      replicationFactor: each.replication_factor ?? 1
    }))
    const created = await asked(admin => admin.createTopics({ topics: wanted, timeout, validateOnly }))
    return new Returned(created, created === true ? null : created)
  },

  /** Returns nothing; throws a failure. */
  async alter_reassignments({ assignments, allow_replication_factor_change: allow }) {
    if (allow === false) throw new Unsupported('alterPartitionReassignments has no such option')
    if (Object.values(assignments).includes(null)) {
      throw new Unsupported('alterPartitionReassignments refuses null replicas')
    }
    const topics = byTopic(Object.keys(assignments)).map(([topic, indexes]) => ({
      topic,
      partitionAssignment: indexes.map(partition => ({
        partition,
        replicas: assignments[`${topic}-${partition}`]
      }))
    }))
    return new Returned(
      await asked(admin => admin.alterPartitionReassignments({ topics, timeout })),
      null
    )
  },

  /** A call of the client is a batch of each partition; it returns the offsets of batches. */
  async produce({ records }) {
    const sending = await sendBatch(records)
    const written = await clientCall(() => inTime(sending(), connection))
    if (written === undefined) return new Returned(written, records.map(() => ({ pending: true })))
    const places = records.map(({ topic, partition }) => {
      const found = elements(written).find(
        each => each?.topicName === topic && each?.partition === partition
      )
      return found ? { topic, partition, base_offset: Number(found.baseOffset) } : {}
    })
    return new Returned(written, places)
  },

  async send({ records }) {
    transactions.sends((await sendBatch(records))())
    return new Returned(undefined, null)
  },

  ...transactions.operations,

  /** A consumer is a member of a group, whose partitions the group assigns. */
  async subscribe({ topics, pattern }) {
    const given = connection.consumer ?? {}
    checkOptions(given, CONSUMER_OPTIONS)
    if (given.protocol === 'consumer') throw new Unsupported('the client has no groups of KIP-848')
    if (given.offset_reset === 'none') throw new Unsupported('the client always resets its offset')
    const assigners = (given.assignors ?? ['roundrobin']).map(name => {
      if (name !== 'roundrobin') throw new Unsupported(`the client has no assigner ${name}`)
      return PartitionAssigners.roundRobin
    })
    const to = (inbox = new Inbox())
    const closed = () => inbox !== to
    polled = new Map()
    assigned = []
    await clientCall(async () => {
      consumer = kafka.consumer({
        groupId: given.group,
        partitionAssigners: assigners,
        maxWaitTimeInMs: given.max_wait_ms,
        // It restarts as by default, but not on the cluster of the next case.
        retry: { retries: CONSUMER_RETRIES, restartOnFailure: async () => !closed() },
        ...metadataAge(given),
        readUncommitted: given.isolation !== 'read_committed',
        ...(given.partition_max_bytes ? { maxBytesPerPartition: given.partition_max_bytes } : {}),
        ...(given.rack ? { rackId: given.rack } : {}),
        ...(given.session_timeout_ms ? { sessionTimeout: given.session_timeout_ms } : {}),
        ...(given.heartbeat_ms ? { heartbeatInterval: given.heartbeat_ms } : {})
      })
      const { GROUP_JOIN, CRASH } = consumer.events
      consumer.on(GROUP_JOIN, ({ payload }) => {
        if (closed()) return
        assigned = Object.entries(payload.memberAssignment).flatMap(([topic, indexes]) =>
          indexes.map(index => `${topic}-${index}`)
        )
      })
      consumer.on(CRASH, ({ payload: { error, restart } }) => {
        if (restart) to.report(error)
        else to.fail(error)
      })
      await consumer.connect()
      const wanted = pattern === undefined ? topics : [new RegExp(pattern)]
      await consumer.subscribe({ topics: wanted, fromBeginning: given.offset_reset === 'earliest' })
      await consumer.run({
        autoCommit: false,
        eachMessage: async ({ topic, partition, message }) => {
          const offset = Number(message.offset)
          const timestamp = Number(message.timestamp)
          const headers = Object.entries(message.headers ?? {}).flatMap(([name, values]) =>
            (Array.isArray(values) ? values : [values]).map(value => [name, textOf(value)])
          )
          const [key, value] = [textOf(message.key), textOf(message.value)]
          to.add({ topic, partition, offset, timestamp, key, value, headers })
        }
      })
    })
  },

  async assignment() {
    return new Returned(assigned, ascending(assigned))
  },

  async poll({ records, ms }) {
    checkOptions(connection.consumer ?? {}, CONSUMER_OPTIONS)
    if (!consumer) throw new Unsupported('a consumer has what its group assigns')
    const returned = await inbox.poll(records, ms)
    for (const { topic, partition, offset } of returned.result) {
      polled.set(`${topic}-${partition}`, offset + 1)
    }
    return returned
  },

  async commit({ offsets }) {
    if (!consumer) throw new Unsupported('the subscription was not possible')
    const wanted = offsets ? Object.entries(offsets) : [...polled]
    await clientCall(() =>
      consumer.commitOffsets(
        wanted.map(([key, offset]) => {
          const [[topic, [partition]]] = byTopic([key])
          return { topic, partition, offset: String(offset) }
        })
      )
    )
    return new Returned(undefined, null)
  },

  async committed({ partitions }) {
    const topics = byTopic(partitions).map(([topic]) => topic)
    const groupId = connection.consumer?.group
    const fetched = await asked(admin => admin.fetchOffsets({ groupId, topics }))
    const found = {}
    for (const each of elements(fetched)) {
      for (const row of elements(each?.partitions)) {
        const key = `${each.topic}-${row.partition}`
        if (partitions.includes(key)) found[key] = Number(row.offset)
      }
    }
    return new Returned(fetched, found)
  },

  async close_consumer() {
    const closing = consumer
    consumer = inbox = undefined
    await clientCall(() => closing?.disconnect())
    return new Returned(undefined, null)
  },

  async list_reassignments({ partitions: wanted }) {
    const topics = wanted
      ? byTopic(wanted).map(([topic, partitions]) => ({ topic, partitions }))
      : null
    const listed = await asked(admin => admin.listPartitionReassignments({ topics, timeout }))
    const ongoing = {}
    // 2.2.4 returns a topic as `name`, although its types call the field `topic`.
    for (const each of elements(listed?.topics)) {
      const name = each?.topic ?? each?.name
      if (!Array.isArray(each?.partitions)) ongoing[name] = each?.partitions ?? null
      for (const row of elements(each?.partitions)) {
        const { partition, replicas, addingReplicas, removingReplicas } = row ?? {}
        ongoing[`${name}-${partition}`] = {
          replicas,
          adding: addingReplicas,
          removing: removingReplicas
        }
      }
    }
    return new Returned(listed, Array.isArray(listed?.topics) ? ongoing : listed?.topics)
  }
}

const metadataAge = ({ metadata_age_ms: age }) => (age === undefined ? {} : { metadataMaxAge: age })

const COMPRESSIONS = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }

const code = error => error.code

/** The errors of topics and partitions arrive as one KafkaJSAggregateError, which names only those. */
function named(error, call) {
  const found = namedItems(error, call)
  for (const one of error.errors ?? error.cause?.errors ?? []) {
    if (one.topic === undefined) continue
    found[one.partition === undefined ? one.topic : `${one.topic}-${one.partition}`] = one
  }
  return found
}

await serve('kafkajs', version, {
  connect,
  close,
  operations,
  records: ['headers'],
  options: {
    ...options('timeout_ms'),
    'retry of producers and consumers': DATA_RETRY,
    'a producer with a transactionalId': TRANSACTIONAL,
    'run.autoCommit': false
  },
  code,
  named
})
