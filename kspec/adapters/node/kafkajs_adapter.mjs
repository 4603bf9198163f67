// Drives kafkajs by the protocol of docs/reference/adapters.md.

import { createRequire } from 'node:module'
import { ascending, byTopic, clientCall, elements, Returned, serve, Unsupported } from './lines.mjs'

const require = createRequire(import.meta.url)
const { Kafka, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')

let admin
let connected
let timeout

/** Options that differ from its defaults. */
const options = timeout => ({
  connectionTimeout: timeout,
  authenticationTimeout: timeout,
  requestTimeout: timeout,
  logLevel: logLevel.NOTHING,
  retry: { retries: 1, initialRetryTime: 50 }
})

function connect(call) {
  timeout = call.timeout_ms
  const sasl = call.sasl && {
    mechanism: call.sasl.mechanism.toLowerCase(),
    username: call.sasl.username,
    password: call.sasl.password
  }
  return clientCall(() => {
    admin = new Kafka({
      clientId: call.client_id,
      brokers: call.bootstrap.split(','),
      ...options(timeout),
      ...(sasl ? { sasl } : {})
    }).admin()
    connected = undefined
  })
}

/** Call the connected client. If connecting fails, the next call tries again, like an application. */
const asked = work =>
  clientCall(async () => {
    connected ??= admin.connect()
    try {
      await connected
    } catch (error) {
      connected = undefined
      throw error
    }
    return work(admin)
  })

async function close() {
  const closing = admin
  admin = undefined
  await closing?.disconnect().catch(() => {}) // its state may not allow a clean close
}

const operations = {
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
  async create_topics({ topics }) {
    const wanted = Object.entries(topics).map(([topic, each]) => ({
      topic,
      numPartitions: each.partitions ?? 1,
      replicationFactor: each.replication_factor ?? 1
    }))
    const created = await asked(admin => admin.createTopics({ topics: wanted, timeout }))
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

const code = error => error.code

/** The errors of topics and partitions arrive as one KafkaJSAggregateError, which names only those. */
function named(error) {
  const found = {}
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
  options: options('timeout_ms'),
  code,
  named
})
