// Drives kafkajs by the lines of docs/adapters.md.

import { createRequire } from 'node:module'
import { byTopic, serve, Unsupported } from './lines.mjs'

const require = createRequire(import.meta.url)
const { Kafka, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')

let admin
let connected
let timeout

const connect = call => {
  timeout = call.timeout_ms
  const sasl = call.sasl && {
    mechanism: call.sasl.mechanism.toLowerCase(),
    username: call.sasl.username,
    password: call.sasl.password
  }
  admin = new Kafka({
    clientId: call.client_id,
    brokers: call.bootstrap.split(','),
    connectionTimeout: timeout,
    authenticationTimeout: timeout,
    requestTimeout: timeout,
    logLevel: logLevel.NOTHING,
    retry: { retries: 1, initialRetryTime: 50 },
    ...(sasl ? { sasl } : {})
  }).admin()
  connected = undefined
}

async function ready() {
  connected ??= admin.connect()
  try {
    await connected
  } catch (error) {
    connected = undefined // the next call may try again, as an application would
    throw error
  }
  return admin
}

async function close() {
  const closing = admin
  admin = undefined
  await closing?.disconnect().catch(() => {}) // it may be in no state to say goodbye
}

/** A whole call's outcome a key; the errors of partitions come as one KafkaJSAggregateError. */
async function outcomes(keys, work) {
  const found = Object.fromEntries(keys.map(key => [key, null]))
  try {
    await work()
  } catch (error) {
    const each = error.errors?.filter(one => one.topic !== undefined) ?? []
    if (each.length === 0) throw error
    for (const one of each) {
      const key = one.partition === undefined ? one.topic : `${one.topic}-${one.partition}`
      found[key] = describe(one)
    }
  }
  return found
}

const operations = {
  async describe_cluster() {
    const { brokers, controller } = await (await ready()).describeCluster()
    return {
      brokers: brokers.map(broker => broker.nodeId).sort((a, b) => a - b),
      controller: controller ?? -1
    }
  },

  async describe_topics({ topics }) {
    const found = {}
    const metadata = await (await ready()).fetchTopicMetadata({ topics })
    for (const { name, partitions } of metadata.topics) {
      found[name] = {}
      for (const { partitionId, leader, replicas, isr } of partitions) {
        found[name][partitionId] = { leader, replicas, isr }
      }
    }
    return found
  },

  async list_topics() {
    return (await (await ready()).listTopics()).sort()
  },

  async create_topics({ topics }) {
    const wanted = Object.entries(topics).map(([topic, each]) => ({
      topic,
      numPartitions: each.partitions ?? 1,
      replicationFactor: each.replication_factor ?? 1
    }))
    const client = await ready()
    return outcomes(Object.keys(topics), () => client.createTopics({ topics: wanted, timeout }))
  },

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
    const client = await ready()
    return outcomes(Object.keys(assignments), () =>
      client.alterPartitionReassignments({ topics, timeout })
    )
  },

  async list_reassignments({ partitions: asked }) {
    const wanted = asked
      ? byTopic(asked).map(([topic, partitions]) => ({ topic, partitions }))
      : null
    const client = await ready()
    const { topics } = await client.listPartitionReassignments({ topics: wanted, timeout })
    const ongoing = {}
    // 2.2.4 hands a topic over as `name`, though its types call the field `topic`.
    for (const { topic, name = topic, partitions } of topics) {
      for (const { partition, replicas, addingReplicas, removingReplicas } of partitions) {
        ongoing[`${name}-${partition}`] = {
          replicas,
          adding: addingReplicas,
          removing: removingReplicas
        }
      }
    }
    return ongoing
  }
}

function describe(error) {
  // Partition errors arrive as a KafkaJSAggregateError of protocol errors, and what ended the
  // retries as the cause of another.
  let cause = error.errors?.[0] ?? error
  if (cause.code === undefined && cause.cause?.code !== undefined) cause = cause.cause
  const code = Number.isInteger(cause.code) ? cause.code : null
  return { error: cause.type ?? cause.name, code, message: cause.message }
}

await serve('kafkajs', version, { connect, close, operations }, describe)
