// Drives @platformatic/kafka by the protocol of docs/reference/adapters.md.
// Its Admin has no reassignment calls. It has functions for each version of those APIs, which leave the
// version and the connection to their caller; the adapter protocol calls them raw calls. This adapter
// uses the controller of the metadata and version 0; only version 1 has the replication-factor guard.

import { readFileSync } from 'node:fs'
import {
  Admin,
  alterPartitionReassignmentsV0,
  alterPartitionReassignmentsV1,
  Consumer,
  listPartitionReassignmentsV0,
  Producer
} from '@platformatic/kafka'
import {
  ascending, byTopic, checkOptions, clientCall, describe, elements, Inbox, inTime, Returned, serve, textOf, Unsupported
} from './lines.mjs'
import { administration, namedItems } from './platformatic_admin.mjs'
import { Transactions } from './transactions.mjs'

// The package does not export its package.json, so it is read from npm's folder.
const manifest = new URL('node_modules/@platformatic/kafka/package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(manifest, 'utf8'))

let admin
let timeout
let connection
let producer
let consumer
let streams
let consumeOptions
let inbox
let polled

/** The messages that the consumer returned, by partition and offset. */
const messages = new Map()

const PRODUCER_OPTIONS = [
  'acks', 'idempotence', 'compression', 'linger_ms', 'delivery_timeout_ms', 'metadata_age_ms', 'transactional_id'
] // a call is a batch, and a delivery takes as long as its retries
const DATA_RETRIES = { retries: 3, retryDelay: 50 } // of a producer or consumer
const CONSUMER_OPTIONS = [
  'group', 'offset_reset', 'isolation', 'max_wait_ms', 'partition_max_bytes', 'protocol', 'instance_id',
  'session_timeout_ms', 'heartbeat_ms', 'remote_assignor', 'metadata_age_ms'
]

/** Options that differ from its defaults. */
const options = timeout => ({
  connectTimeout: timeout,
  requestTimeout: timeout,
  timeout,
  retries: 1,
  retryDelay: 50
})

const rawCalls = {
  alter_reassignments:
    'alterPartitionReassignmentsV0, or V1 where allow_replication_factor_change is given',
  list_reassignments: 'listPartitionReassignmentsV0'
}

function connect(call) {
  timeout = call.timeout_ms
  connection = call
  return clientCall(() => {
    admin = new Admin(common())
  })
}

const common = () => ({
  clientId: connection.client_id,
  bootstrapBrokers: connection.bootstrap.split(','),
  ...options(timeout),
  ...(connection.sasl ? { sasl: connection.sasl } : {})
})

const transactions = new Transactions(
  () => clientCall(() => madeProducer().beginTransaction()),
  async (transaction, { offsets }) => {
    const last = Object.entries(offsets).map(([key, offset]) => {
      const message = messages.get(`${key}@${offset - 1}`)
      if (!message) throw new Unsupported('addOffset takes a message that a consumer returned')
      return message
    })
    await clientCall(async () => {
      await transaction.addConsumer(consumer)
      for (const message of last) await transaction.addOffset(message)
    })
  }
)

async function close() {
  transactions.clear()
  const closing = [producer?.close(true), consumer?.close(true), admin?.close()]
  admin = producer = consumer = undefined
  messages.clear()
  for (const each of closing) await each?.catch(() => {}) // its state may not allow a clean close
}

/** The client's connection to the controller, for a raw call. */
async function controller() {
  const metadata = await clientCall(() => admin.metadata({ topics: [] }))
  const id = metadata?.controllerId
  const connections = await clientCall(() => admin.connectToBrokers([id]))
  const connection = connections?.get?.(id)
  if (!connection) throw new Unsupported(`a raw call needs a connection, and there is none to ${id}`)
  return connection
}

function madeProducer() {
  const given = connection.producer ?? {}
  const { transactional_id: transactionalId } = given
  producer ??= new Producer({
    ...common(),
    ...DATA_RETRIES,
    ...metadataAge(given),
    ...(transactionalId === undefined ? {} : { transactionalId, idempotent: true })
  })
  return producer
}

/** Headers as the client takes them, which has one value of a name. */
function byName(headers) {
  const found = new Map(headers)
  if (found.size < headers.length) throw new Unsupported('a header has one value')
  return new Map([...found].map(each => each.map(bytesOf)))
}

/** A function that sends `records` within the transaction, if there is one. */
async function send(records) {
  const given = connection.producer ?? {}
  checkOptions(given, PRODUCER_OPTIONS)
  const { acks, idempotence: idempotent, compression } = given
  const transaction = await transactions.current()
  const messages = records.map(({ topic, partition, key, value, headers }) => ({
    topic,
    partition,
    key: bytesOf(key),
    value: bytesOf(value),
    ...(headers === undefined ? {} : { headers: byName(headers) })
  }))
  return () =>
    (transaction ?? madeProducer()).send({
      messages,
      ...(acks === undefined ? {} : { acks: acks === 'all' ? -1 : acks }),
      ...(idempotent === undefined ? {} : { idempotent }),
      ...(compression === undefined ? {} : { compression })
    })
}

function makeConsumer(given) {
  inbox = new Inbox()
  polled = new Map()
  streams = []
  const fallbackMode = { none: 'fail' }[given.offset_reset] ?? given.offset_reset
  consumeOptions = {
    autocommit: false,
    mode: 'committed',
    maxWaitTime: given.max_wait_ms,
    ...(fallbackMode ? { fallbackMode } : {}),
    ...(given.isolation ? { isolationLevel: given.isolation === 'read_committed' ? 1 : 0 } : {}),
    ...(given.partition_max_bytes ? { maxBytesPerPartition: given.partition_max_bytes } : {})
  }
  consumer = new Consumer({
    ...common(),
    ...DATA_RETRIES,
    ...metadataAge(given),
    groupId: given.group,
    ...(given.protocol ? { groupProtocol: given.protocol } : {}),
    ...(given.remote_assignor ? { groupRemoteAssignor: given.remote_assignor } : {}),
    ...(given.instance_id ? { groupInstanceId: given.instance_id } : {}),
    ...(given.session_timeout_ms ? { sessionTimeout: given.session_timeout_ms } : {}),
    ...(given.heartbeat_ms ? { heartbeatInterval: given.heartbeat_ms } : {})
  })
  const to = inbox
  consumer.on('error', error => to.report(error))
  consumer.on('consumer:heartbeat:error', ({ error }) => to.report(error))
}

/** The offsets of the batches that were written, although `send` was rejected with `error`. */
function writtenDespite(error) {
  const answered = elements(error.response?.responses).flatMap(({ name: topic, partitionResponses }) =>
    elements(partitionResponses)
      .filter(row => row.errorCode === 0)
      .map(({ index: partition, baseOffset: offset }) => ({ topic, partition, offset }))
  )
  return [...elements(error.produced?.offsets), ...answered, ...elements(error.errors).flatMap(writtenDespite)]
}

/**
 * Start the streams that do not run. `consume` joins the group, which belongs to `poll`: its rejection is
 * an outcome of that call, and the call after it consumes again, like an application.
 */
function consume() {
  const to = inbox
  for (const each of streams.filter(each => !each.running)) {
    const ended = error => {
      each.running = undefined
      to.fail(error)
    }
    each.running = new Promise(resolve => {
      // A callback gets the stream before its first error; a promise is too late for one of a closed client.
      consumer.consume({ ...consumeOptions, topics: [...each.topics] }, (error, stream) => {
        resolve(stream)
        if (error) return ended(error)
        stream.on('data', message => {
          const { topic, partition, key, value } = message
          const headers = [...message.headers].map(each => each.map(textOf))
          const [offset, timestamp] = [message.offset, message.timestamp].map(Number)
          messages.set(`${topic}-${partition}@${offset}`, message)
          to.add({ topic, partition, offset, timestamp, key: textOf(key), value: textOf(value), headers })
        })
        stream.on('error', ended)
      })
    })
  }
}

const operations = {
  ...administration(work => clientCall(() => work(admin))),

  async describe_cluster() {
    const metadata = await clientCall(() => admin.metadata({ topics: [], forceUpdate: true }))
    return new Returned(metadata, {
      brokers: ascending(metadata?.brokers?.keys?.() ?? []),
      controller: metadata?.controllerId
    })
  },

  async describe_topics({ topics }) {
    const metadata = await clientCall(() => admin.metadata({ topics, forceUpdate: true }))
    const found = {}
    for (const [name, topic] of metadata?.topics ?? []) {
      const partitions = (found[name] = {})
      elements(topic?.partitions).forEach((row, index) => {
        const { leader, replicas, isr } = row ?? {}
        partitions[index] = { leader, replicas, isr }
      })
    }
    return new Returned(metadata, found)
  },

  async list_topics() {
    const names = await clientCall(() => admin.listTopics())
    return new Returned(names, ascending(elements(names)))
  },

  /** It takes one partition count and one replication factor for all topics. */
  async create_topics({ topics, validate_only: validateOnly }) {
    if (validateOnly) throw new Unsupported('createTopics has no option to validate only')
    const numbers = Object.values(topics).map(each => [
      each.partitions ?? 1,
      each.replication_factor ?? 1
    ])
    if (new Set(numbers.map(String)).size > 1) {
      throw new Unsupported('createTopics takes one number of partitions for all topics')
    }
    const [[partitions, replicas]] = numbers
    const wanted = { topics: Object.keys(topics), partitions, replicas }
    const created = await clientCall(() => admin.createTopics(wanted))
    const names = elements(created).map(topic => topic?.name)
    return new Returned(created, Object.fromEntries(names.map(name => [name, null])))
  },

  /** A call of the client is a batch of each partition; it returns the offsets of batches. */
  async produce({ records }) {
    const sending = await send(records)
    const sent = await clientCall(() => inTime(sending().catch(error => error), connection))
    if (sent === undefined) return new Returned(sent, records.map(() => ({ pending: true })))
    const written = sent instanceof Error ? writtenDespite(sent) : elements(sent.offsets)
    const places = records.map(({ topic, partition }) => {
      const found = written.find(each => each?.topic === topic && each?.partition === partition)
      if (found) return { topic, partition, base_offset: Number(found.offset) }
      return sent instanceof Error ? describe(sent, { code, message }) : {}
    })
    return new Returned(sent, places)
  },

  async send({ records }) {
    transactions.sends((await send(records))())
    return new Returned(undefined, null)
  },

  ...transactions.operations,

  async begin_transaction(call) {
    checkOptions(connection.producer ?? {}, PRODUCER_OPTIONS)
    return transactions.operations.begin_transaction(call)
  },

  /** A consumer is a member of a group, whose partitions the group assigns. */
  async subscribe({ topics, pattern }) {
    const given = connection.consumer ?? {}
    checkOptions(given, CONSUMER_OPTIONS)
    if (pattern !== undefined) throw new Unsupported('consume takes the names of topics')
    if (!consumer) await clientCall(() => makeConsumer(given))
    // One stream has the topics of one call, so that those that stay go on where they are.
    const unwanted = streams.filter(each => !each.topics.every(topic => topics.includes(topic)))
    for (const each of unwanted) await clientCall(async () => (await each.running)?.close())
    streams = streams.filter(each => !unwanted.includes(each))
    const added = topics.filter(topic => !streams.some(each => each.topics.includes(topic)))
    if (added.length) streams.push({ topics: added, running: undefined })
    consume()
    return new Returned(undefined, null)
  },

  async assignment() {
    const assigned = elements(consumer?.assignments).flatMap(({ topic, partitions }) =>
      partitions.map(index => `${topic}-${index}`)
    )
    return new Returned(assigned, ascending(assigned))
  },

  async poll({ records, ms }) {
    checkOptions(connection.consumer ?? {}, CONSUMER_OPTIONS)
    if (!consumer) throw new Unsupported('a consumer has what its group assigns')
    if (!inbox.failed) consume()
    const returned = await inbox.poll(records, ms)
    for (const { topic, partition, offset } of returned.result) {
      polled.set(`${topic}-${partition}`, offset + 1)
    }
    return returned
  },

  async commit({ offsets }) {
    if (!consumer) throw new Unsupported('the subscription was not possible')
    const wanted = (offsets ? Object.entries(offsets) : [...polled]).map(([key, offset]) => {
      const [[topic, [partition]]] = byTopic([key])
      return { topic, partition, offset: BigInt(offset), leaderEpoch: -1 }
    })
    await clientCall(() => consumer.commit({ offsets: wanted }))
    return new Returned(undefined, null)
  },

  /** It returns the offsets of a topic's partitions by their numbers. */
  async committed({ partitions: wanted }) {
    if (!consumer) throw new Unsupported('the subscription was not possible')
    const topics = byTopic(wanted).map(([topic, partitions]) => ({ topic, partitions }))
    const fetched = await clientCall(() => consumer.listCommittedOffsets({ topics }))
    const found = {}
    for (const [topic, offsets] of fetched) {
      offsets.forEach((offset, index) => {
        if (wanted.includes(`${topic}-${index}`)) found[`${topic}-${index}`] = Number(offset)
      })
    }
    return new Returned(fetched, found)
  },

  async close_consumer() {
    const closing = consumer
    consumer = undefined
    await clientCall(() => closing?.close(true))
    return new Returned(undefined, null)
  },

  async alter_reassignments({ assignments, allow_replication_factor_change: allow = true }) {
    const topics = byTopic(Object.keys(assignments)).map(([name, indexes]) => ({
      name,
      partitions: indexes.map(partitionIndex => ({
        partitionIndex,
        replicas: assignments[`${name}-${partitionIndex}`]
      }))
    }))
    const alter = allow ? alterPartitionReassignmentsV0 : alterPartitionReassignmentsV1
    const connection = await controller()
    const response = await clientCall(() =>
      alter.api.async(connection, timeout, allow, topics)
    )
    return new Returned(response, Object.fromEntries(rows(response).map(([key]) => [key, null])))
  },

  async list_reassignments({ partitions: wanted }) {
    const topics = wanted
      ? byTopic(wanted).map(([name, partitionIndexes]) => ({ name, partitionIndexes }))
      : null
    const connection = await controller()
    const listed = await clientCall(() =>
      listPartitionReassignmentsV0.api.async(connection, timeout, topics)
    )
    const ongoing = {}
    for (const topic of elements(listed?.topics)) {
      if (!Array.isArray(topic?.partitions)) ongoing[topic?.name] = topic?.partitions ?? null
      for (const row of elements(topic?.partitions)) {
        const { partitionIndex, replicas, addingReplicas, removingReplicas } = row ?? {}
        ongoing[`${topic?.name}-${partitionIndex}`] = {
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

const bytesOf = text => (text === undefined || text === null ? undefined : Buffer.from(text))

/** The partitions of a response to AlterPartitionReassignments, by "topic-partition". */
function rows(response) {
  return elements(response?.responses).flatMap(topic =>
    elements(topic?.partitions).map(row => [`${topic?.name}-${row?.partitionIndex}`, row])
  )
}

const code = error => error.apiCode
const texts = error => [error.code, error.message, error.serverErrorMessage]
const message = error => texts(error).filter(Boolean).join(': ')

/** A ResponseError has the response, and an error for each partition by its path in it. */
function named(error) {
  const found = namedItems(error)
  for (const one of error.errors ?? []) {
    const [, created] = /^\/topics\/(\d+)$/.exec(one.path ?? '') ?? []
    if (created !== undefined) found[error.response?.topics?.[created]?.name] = one
    const [, topic, partition] = /^responses\/(\d+)\/partitions\/(\d+)$/.exec(one.path ?? '') ?? []
    const name = error.response?.responses?.[topic]?.name
    const row = error.response?.responses?.[topic]?.partitions?.[partition]
    if (row) found[`${name}-${row.partitionIndex}`] = one
  }
  return found
}

await serve('@platformatic/kafka', version, {
  connect,
  close,
  operations,
  records: ['headers'],
  options: {
    ...options('timeout_ms'),
    'retries of Producer and Consumer': DATA_RETRIES.retries,
    'idempotent of a Producer with a transactionalId': true,
    'autocommit of consume': false,
    'mode of consume': 'committed'
  },
  rawCalls,
  code,
  message,
  named
})
