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
  ascending, byTopic, checkOptions, clientCall, elements, Inbox, inTime, Returned, serve, textOf, Unsupported
} from './lines.mjs'

// The package does not export its package.json, so it is read from npm's folder.
const manifest = new URL('node_modules/@platformatic/kafka/package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(manifest, 'utf8'))

let admin
let timeout
let connection
let producer
let consumer
let inbox
let polled

const PRODUCER_OPTIONS = ['acks', 'idempotence', 'compression', 'linger_ms', 'delivery_timeout_ms', 'metadata_age_ms']
// A call is a batch, and a delivery takes as long as its retries.
const PRODUCER_RETRIES = { retries: 3, retryDelay: 50 }
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

async function close() {
  const closing = [producer?.close(true), consumer?.close(true), admin?.close()]
  admin = producer = consumer = undefined
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

const operations = {
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
  async create_topics({ topics }) {
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
    const given = connection.producer ?? {}
    checkOptions(given, PRODUCER_OPTIONS)
    const { acks, idempotence: idempotent, compression } = given
    const written = await clientCall(() => {
      producer ??= new Producer({ ...common(), ...PRODUCER_RETRIES, ...metadataAge(given) })
      const sending = producer.send({
        messages: records.map(({ topic, partition, key, value }) => ({
          topic,
          partition,
          key: bytesOf(key),
          value: bytesOf(value)
        })),
        ...(acks === undefined ? {} : { acks: acks === 'all' ? -1 : acks }),
        ...(idempotent === undefined ? {} : { idempotent }),
        ...(compression === undefined ? {} : { compression })
      })
      return inTime(sending, connection)
    })
    if (written === undefined) return new Returned(written, records.map(() => ({ pending: true })))
    const places = records.map(({ topic, partition }) => {
      const isHere = each => each?.topic === topic && each?.partition === partition
      const found = elements(written?.offsets).find(isHere)
      return found ? { topic, partition, base_offset: Number(found.offset) } : {}
    })
    return new Returned(written, places)
  },

  /** A consumer is a member of a group, whose partitions the group assigns. */
  async subscribe({ topics, pattern }) {
    const given = connection.consumer ?? {}
    checkOptions(given, CONSUMER_OPTIONS)
    if (pattern !== undefined) throw new Unsupported('consume takes the names of topics')
    inbox = new Inbox()
    polled = new Map()
    const fallbackMode = { none: 'fail' }[given.offset_reset] ?? given.offset_reset
    await clientCall(async () => {
      consumer = new Consumer({
        ...common(),
        ...metadataAge(given),
        groupId: given.group,
        ...(given.protocol ? { groupProtocol: given.protocol } : {}),
        ...(given.remote_assignor ? { groupRemoteAssignor: given.remote_assignor } : {}),
        ...(given.instance_id ? { groupInstanceId: given.instance_id } : {}),
        ...(given.session_timeout_ms ? { sessionTimeout: given.session_timeout_ms } : {}),
        ...(given.heartbeat_ms ? { heartbeatInterval: given.heartbeat_ms } : {})
      })
      const stream = await consumer.consume({
        topics,
        autocommit: false,
        mode: 'committed',
        maxWaitTime: given.max_wait_ms,
        ...(fallbackMode ? { fallbackMode } : {}),
        ...(given.isolation ? { isolationLevel: given.isolation === 'read_committed' ? 1 : 0 } : {}),
        ...(given.partition_max_bytes ? { maxBytesPerPartition: given.partition_max_bytes } : {})
      })
      const to = inbox
      stream.on('data', ({ topic, partition, offset, key, value }) => {
        to.add({ topic, partition, offset: Number(offset), key: textOf(key), value: textOf(value) })
      })
      stream.on('error', error => to.fail(error))
    })
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
    const returned = await inbox.poll(records, ms)
    for (const { topic, partition, offset } of returned.result) {
      polled.set(`${topic}-${partition}`, offset + 1)
    }
    return returned
  },

  async commit({ offsets }) {
    const wanted = (offsets ? Object.entries(offsets) : [...polled]).map(([key, offset]) => {
      const [[topic, [partition]]] = byTopic([key])
      return { topic, partition, offset: BigInt(offset), leaderEpoch: -1 }
    })
    await clientCall(() => consumer.commit({ offsets: wanted }))
    return new Returned(undefined, null)
  },

  /** It returns the offsets of a topic's partitions by their numbers. */
  async committed({ partitions: wanted }) {
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
  const found = {}
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
  options: {
    ...options('timeout_ms'),
    'retries of Producer': PRODUCER_RETRIES.retries,
    'autocommit of consume': false,
    'mode of consume': 'committed'
  },
  rawCalls,
  code,
  message,
  named
})
