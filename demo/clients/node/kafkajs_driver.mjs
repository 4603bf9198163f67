// Drives kafkajs for the demo: BOOTSTRAP TIMEOUT_MS on the command line.

import { createRequire } from 'node:module'
import { serve, Unsupported } from './line_protocol.mjs'

const require = createRequire(import.meta.url)
const { Kafka, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')

const [bootstrap, timeoutText] = process.argv.slice(2)
const timeout = Number(timeoutText)

const admin = new Kafka({
  clientId: 'demo-kafkajs',
  brokers: bootstrap.split(','),
  connectionTimeout: timeout,
  requestTimeout: timeout,
  logLevel: logLevel.NOTHING,
  retry: { retries: 1, initialRetryTime: 50 }
}).admin()

let connected
const connect = () => (connected ??= admin.connect())

const operations = {
  async describe_cluster() {
    await connect()
    const { brokers, controller } = await admin.describeCluster()
    return { brokers: brokers.map(broker => broker.nodeId).sort((a, b) => a - b), controller }
  },

  async alter({ topic, partition, replicas, allow_replication_factor_change: allow }) {
    if (allow === false) throw new Unsupported('alterPartitionReassignments has no such option')
    if (replicas === null) throw new Unsupported('alterPartitionReassignments refuses null replicas')
    await connect()
    await admin.alterPartitionReassignments({
      topics: [{ topic, partitionAssignment: [{ partition, replicas }] }],
      timeout
    })
  },

  async list() {
    await connect()
    const { topics } = await admin.listPartitionReassignments({ topics: null, timeout })
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
  // Partition errors arrive as a KafkaJSAggregateError of protocol errors.
  const cause = error.errors?.[0] ?? error
  return { error: cause.type ?? cause.name, code: cause.code ?? null, message: cause.message }
}

await serve('kafkajs', version, operations, describe, () => admin.disconnect())
