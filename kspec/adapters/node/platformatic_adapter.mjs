// Drives @platformatic/kafka by the protocol of docs/reference/adapters.md.
// Its Admin has no reassignment calls. It has functions for each version of those APIs, which leave the
// version and the connection to their caller; the adapter protocol calls them raw calls. This adapter
// uses the controller of the metadata and version 0; only version 1 has the replication-factor guard.

import { readFileSync } from 'node:fs'
import {
  Admin,
  alterPartitionReassignmentsV0,
  alterPartitionReassignmentsV1,
  listPartitionReassignmentsV0
} from '@platformatic/kafka'
import { ascending, byTopic, clientCall, elements, Returned, serve, Unsupported } from './lines.mjs'

// The package does not export its package.json, so it is read from npm's folder.
const manifest = new URL('node_modules/@platformatic/kafka/package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(manifest, 'utf8'))

let admin
let timeout

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
  return clientCall(() => {
    admin = new Admin({
      clientId: call.client_id,
      bootstrapBrokers: call.bootstrap.split(','),
      ...options(timeout),
      ...(call.sasl ? { sasl: call.sasl } : {})
    })
  })
}

async function close() {
  const closing = admin
  admin = undefined
  await closing?.close().catch(() => {}) // its state may not allow a clean close
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
  options: options('timeout_ms'),
  rawCalls,
  code,
  message,
  named
})
