// Drives @platformatic/kafka for the demo: BOOTSTRAP TIMEOUT_MS on the command line.
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
import { serve } from './line_protocol.mjs'

// The package does not export its package.json, so it is read where npm puts it.
const manifest = new URL('node_modules/@platformatic/kafka/package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(manifest, 'utf8'))

const [bootstrap, timeoutText] = process.argv.slice(2)
const timeout = Number(timeoutText)

const admin = new Admin({
  clientId: 'demo-platformatic',
  bootstrapBrokers: bootstrap.split(','),
  connectTimeout: timeout,
  timeout,
  retries: 1,
  retryDelay: 50
})

async function controller() {
  const { controllerId } = await admin.metadata({ topics: [] })
  return (await admin.connectToBrokers([controllerId])).get(controllerId)
}

const operations = {
  async describe_cluster() {
    const { brokers, controllerId } = await admin.metadata({ topics: [], forceUpdate: true })
    return { brokers: [...brokers.keys()].sort((a, b) => a - b), controller: controllerId }
  },

  async alter({ topic, partition, replicas, allow_replication_factor_change: allow = true }) {
    const topics = [{ name: topic, partitions: [{ partitionIndex: partition, replicas }] }]
    const alter = allow ? alterPartitionReassignmentsV0 : alterPartitionReassignmentsV1
    await alter.api.async(await controller(), timeout, allow, topics)
  },

  async list() {
    const list = listPartitionReassignmentsV0.api
    const { topics } = await list.async(await controller(), timeout, null)
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

function describe(error) {
  // A ResponseError gathers one ProtocolError a failed partition.
  const cause = error.errors?.[0] ?? error
  return {
    error: cause.apiId ?? cause.code ?? cause.name,
    code: cause.apiCode ?? null,
    message: cause.serverErrorMessage ?? cause.message
  }
}

await serve('@platformatic/kafka', version, operations, describe, () => admin.close())
