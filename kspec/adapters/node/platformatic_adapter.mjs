// Drives @platformatic/kafka by the lines of docs/adapters.md.
// Its Admin has no reassignment calls; its per-version API functions do, on a connection to a
// broker. Those leave the choice of version to the caller, and this caller takes version 0: the
// parser of version 1 in this release skips a field of the answer. Only the replication-factor
// guard has to be asked for in version 1.

import { readFileSync } from 'node:fs'
import {
  Admin,
  alterPartitionReassignmentsV0,
  alterPartitionReassignmentsV1,
  listPartitionReassignmentsV0
} from '@platformatic/kafka'
import { byTopic, serve } from './lines.mjs'

// The package does not export its package.json, so it is read where npm puts it.
const manifest = new URL('node_modules/@platformatic/kafka/package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(manifest, 'utf8'))

let admin
let timeout

function connect(call) {
  timeout = call.timeout_ms
  admin = new Admin({
    clientId: call.client_id,
    bootstrapBrokers: call.bootstrap.split(','),
    connectTimeout: timeout,
    requestTimeout: timeout,
    timeout,
    retries: 1,
    retryDelay: 50,
    ...(call.sasl ? { sasl: call.sasl } : {})
  })
}

async function close() {
  const closing = admin
  admin = undefined
  await closing?.close().catch(() => {}) // it may be in no state to say goodbye
}

async function controller() {
  const { controllerId } = await admin.metadata({ topics: [] })
  return (await admin.connectToBrokers([controllerId])).get(controllerId)
}

const operations = {
  async describe_cluster() {
    const { brokers, controllerId } = await admin.metadata({ topics: [], forceUpdate: true })
    return { brokers: [...brokers.keys()].sort((a, b) => a - b), controller: controllerId }
  },

  async describe_topics({ topics }) {
    const metadata = await admin.metadata({ topics, forceUpdate: true })
    const found = {}
    for (const [name, { partitions }] of metadata.topics) {
      found[name] = {}
      partitions.forEach(({ leader, replicas, isr }, index) => {
        found[name][index] = { leader, replicas, ...(isr ? { isr } : {}) }
      })
    }
    return found
  },

  async list_topics() {
    return (await admin.listTopics()).sort()
  },

  async create_topics({ topics }) {
    const found = {}
    // Its createTopics takes numbers for all topics at once, so each has a call of its own.
    for (const [name, each] of Object.entries(topics)) {
      try {
        await admin.createTopics({
          topics: [name],
          partitions: each.partitions ?? 1,
          replicas: each.replication_factor ?? 1
        })
        found[name] = null
      } catch (error) {
        found[name] = describe(error)
      }
    }
    return found
  },

  async alter_reassignments({ assignments, allow_replication_factor_change: allow = true }) {
    const keys = Object.keys(assignments)
    const topics = byTopic(keys).map(([name, indexes]) => ({
      name,
      partitions: indexes.map(partitionIndex => ({
        partitionIndex,
        replicas: assignments[`${name}-${partitionIndex}`]
      }))
    }))
    const alter = allow ? alterPartitionReassignmentsV0 : alterPartitionReassignmentsV1
    const found = Object.fromEntries(keys.map(key => [key, null]))
    try {
      await alter.api.async(await controller(), timeout, allow, topics)
    } catch (error) {
      const rows = partitionErrors(error)
      if (rows.length === 0) throw error
      for (const [key, one] of rows) found[key] = one
    }
    return found
  },

  async list_reassignments({ partitions: asked }) {
    const list = listPartitionReassignmentsV0.api
    const wanted = asked
      ? byTopic(asked).map(([name, partitionIndexes]) => ({ name, partitionIndexes }))
      : null
    const { topics } = await list.async(await controller(), timeout, wanted)
    const ongoing = {}
    for (const { name, partitions } of topics) {
      for (const { partitionIndex, replicas, addingReplicas, removingReplicas } of partitions) {
        ongoing[`${name}-${partitionIndex}`] = {
          replicas,
          adding: addingReplicas,
          removing: removingReplicas
        }
      }
    }
    return ongoing
  }
}

/** The partitions that failed, out of the response that a ResponseError keeps. */
function partitionErrors(error) {
  const found = []
  for (const { name, partitions } of error.response?.responses ?? []) {
    for (const { partitionIndex, errorCode, errorMessage } of partitions) {
      if (errorCode) {
        const message = errorMessage ?? ''
        found.push([`${name}-${partitionIndex}`, { error: 'ProtocolError', code: errorCode, message }])
      }
    }
  }
  return found
}

function describe(error) {
  // A ResponseError gathers one ProtocolError a failed partition.
  let cause = error
  while (cause.apiCode === undefined && cause.errors?.length) cause = cause.errors[0]
  return {
    error: cause.apiId ?? cause.code ?? cause.name,
    code: cause.apiCode ?? null,
    message: cause.serverErrorMessage ?? cause.message
  }
}

await serve('@platformatic/kafka', version, { connect, close, operations }, describe)
