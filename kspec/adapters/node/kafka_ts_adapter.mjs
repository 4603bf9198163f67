// Drives kafka-ts by the protocol of docs/reference/adapters.md.
// Administration goes through its low-level requests: the client chooses the version, and for those that go
// to the controller the caller chooses the broker, which the adapter protocol calls a raw call. Its consumer
// commits by itself, or reads all partitions of a topic without a group, so that no call here fits it.

import { createRequire } from 'node:module'
import {
  ascending, byTopic, checkOptions, clientCall, describe, elements, inTime, Returned, serve, Unsupported
} from './lines.mjs'

const require = createRequire(import.meta.url)
const { API, createKafkaClient, KafkaTSApiError, saslPlain, saslScramSha256, saslScramSha512, setLogger } =
  require('kafka-ts')
const { version } = require('kafka-ts/package.json')

const silent = () => {}
setLogger({ debug: silent, info: silent, warn: silent, error: silent })

let connection
let client
let cluster
let producer

const PRODUCER_OPTIONS = ['acks', 'idempotence', 'linger_ms', 'delivery_timeout_ms']
// A call is a batch. It always waits for all replicas with a producer id, and has no time for a delivery.

const PRODUCER_RETRIES = { maxRetries: 3, retryDelayMs: 50 }

const SASL = { PLAIN: saslPlain, 'SCRAM-SHA-256': saslScramSha256, 'SCRAM-SHA-512': saslScramSha512 }

/** Options that differ from its defaults. */
const options = timeout => ({ requestTimeout: timeout, connectTimeout: timeout })

const CONTROLLER = 'cluster.sendRequestToNode, with the controller of the metadata'
const rawCalls = {
  create_topics: CONTROLLER,
  alter_reassignments: CONTROLLER,
  list_reassignments: CONTROLLER,
  elect_leaders: CONTROLLER
}

function connect(call) {
  connection = call
  return clientCall(() => {
    client = createKafkaClient({
      clientId: call.client_id,
      bootstrapServers: call.bootstrap.split(',').map(address => {
        const at = address.lastIndexOf(':')
        return { host: address.slice(0, at), port: Number(address.slice(at + 1)) }
      }),
      ...options(call.timeout_ms),
      ...(call.sasl ? { sasl: SASL[call.sasl.mechanism](call.sasl) } : {})
    })
    cluster = client.createCluster()
  })
}

async function close() {
  const closing = [cluster?.disconnect(), producer?.close()]
  cluster = producer = undefined
  for (const each of closing) await each?.catch(() => {}) // its state may not allow a clean close
}

/** Every request connects first where that is necessary, like the client's own producer. */
const requested = (api, request) =>
  clientCall(async () => {
    await cluster.ensureConnected()
    return cluster.sendRequest(api, request)
  })

const metadata = topics =>
  requested(API.METADATA, {
    topics,
    allowTopicAutoCreation: false,
    includeTopicAuthorizedOperations: false
  })

async function ofController(api, request) {
  const { controllerId } = await metadata([])
  return clientCall(() => cluster.sendRequestToNode(controllerId)(api, request))
}

/** Headers as the client takes them, which has one text of a name. */
function byName(headers) {
  const found = Object.fromEntries(headers)
  if (Object.keys(found).length < headers.length) throw new Unsupported('a header has one value')
  if (Object.values(found).includes(null)) throw new Unsupported('a header is a text')
  return found
}

const operations = {
  async describe_cluster() {
    const found = await metadata([])
    const brokers = ascending(elements(found?.brokers).map(broker => broker?.nodeId))
    return new Returned(found, { brokers, controller: found?.controllerId })
  },

  async describe_topics({ topics }) {
    const found = await metadata(topics.map(name => ({ id: null, name })))
    const described = {}
    for (const topic of elements(found?.topics)) {
      const partitions = (described[topic?.name] = {})
      for (const row of elements(topic?.partitions)) {
        const { partitionIndex, leaderId: leader, replicaNodes: replicas, isrNodes: isr } = row ?? {}
        partitions[partitionIndex] = { leader, replicas, isr }
      }
    }
    return new Returned(found, described)
  },

  async list_topics() {
    const found = await metadata(null)
    return new Returned(found, ascending(elements(found?.topics).map(topic => topic?.name)))
  },

  async create_topics({ topics, validate_only: validateOnly = false }) {
    const created = await ofController(API.CREATE_TOPICS, {
      validateOnly,
      timeoutMs: connection.timeout_ms,
      topics: Object.entries(topics).map(([name, each]) => ({
        name,
        numPartitions: each.partitions ?? 1,
        replicationFactor: each.replication_factor ?? 1,
        assignments: [],
        configs: []
      }))
    })
    const names = elements(created?.topics).map(topic => topic?.name)
    return new Returned(created, Object.fromEntries(names.map(name => [name, null])))
  },

  async alter_reassignments({ assignments, allow_replication_factor_change: allow }) {
    const answer = await ofController(API.ALTER_PARTITION_REASSIGNMENTS, {
      timeoutMs: connection.timeout_ms,
      ...(allow === undefined ? {} : { allowReplicationFactorChange: allow }),
      topics: byTopic(Object.keys(assignments)).map(([name, indexes]) => ({
        name,
        partitions: indexes.map(partitionIndex => ({
          partitionIndex,
          replicas: assignments[`${name}-${partitionIndex}`]
        }))
      }))
    })
    const keys = elements(answer?.responses).flatMap(topic =>
      elements(topic?.partitions).map(row => `${topic?.name}-${row?.partitionIndex}`)
    )
    return new Returned(answer, Object.fromEntries(keys.map(key => [key, null])))
  },

  async list_reassignments({ partitions: wanted }) {
    const listed = await ofController(API.LIST_PARTITION_REASSIGNMENTS, {
      timeoutMs: connection.timeout_ms,
      topics: wanted ? byTopic(wanted).map(([name, partitionIndexes]) => ({ name, partitionIndexes })) : null
    })
    const ongoing = {}
    for (const topic of elements(listed?.topics)) {
      for (const row of elements(topic?.partitions)) {
        const { partitionIndex, replicas, addingReplicas: adding, removingReplicas: removing } = row ?? {}
        ongoing[`${topic?.name}-${partitionIndex}`] = { replicas, adding, removing }
      }
    }
    return new Returned(listed, ongoing)
  },

  async elect_leaders({ type, partitions: wanted }) {
    const answer = await ofController(API.ELECT_LEADERS, {
      electionType: type === 'unclean' ? 1 : 0,
      topicPartitions: wanted ? byTopic(wanted).map(([topic, partitions]) => ({ topic, partitions })) : null,
      timeoutMs: connection.timeout_ms
    })
    const keys = elements(answer?.replicaElectionResults).flatMap(each =>
      elements(each?.partitionResult).map(row => `${each?.topic}-${row?.partitionId}`)
    )
    return new Returned(answer, Object.fromEntries(keys.map(key => [key, null])))
  },

  /** `send` returns nothing: it is one promise for all records of a call, each of which has a call here. */
  async produce({ records }) {
    const { acks, idempotence, ...others } = connection.producer ?? {}
    checkOptions(others, PRODUCER_OPTIONS)
    if (acks !== undefined && acks !== 'all') checkOptions({ 'acks other than all': acks }, [])
    if (idempotence === false) checkOptions({ 'no idempotence': idempotence }, [])
    producer ??= client.createProducer(PRODUCER_RETRIES)
    const messages = records.map(({ headers, ...record }) => ({
      value: null,
      ...record,
      ...(headers === undefined ? {} : { headers: byName(headers) })
    }))
    const sent = messages.map(record =>
      producer.send([record]).then(
        () => ({ topic: record.topic, partition: record.partition }),
        error => error
      )
    )
    const found = await Promise.all(sent.map(each => inTime(each, connection)))
    const outcomes = found.map(each =>
      each === undefined ? { pending: true } : each instanceof Error ? describe(each, { code }) : each
    )
    return new Returned(found, outcomes)
  }
}

const code = error => (error instanceof KafkaTSApiError ? error.errorCode : null)

/** The rows of a response that an error comes with. It is thrown for the first row that has an error. */
function named(error) {
  const { responses, replicaElectionResults, topics } = error.response ?? {}
  const rows = [
    ...elements(responses).flatMap(topic =>
      elements(topic.partitions).map(row => [`${topic.name}-${row.partitionIndex}`, row])
    ),
    ...elements(replicaElectionResults).flatMap(each =>
      elements(each.partitionResult).map(row => [`${each.topic}-${row.partitionId}`, row])
    ),
    ...elements(topics).map(topic => [topic.name, topic])
  ]
  return Object.fromEntries(
    rows
      .filter(([, row]) => row.errorCode)
      .map(([key, row]) => [key, new KafkaTSApiError(row.errorCode, row.errorMessage ?? null, null)])
  )
}

await serve('kafka-ts', version, {
  connect,
  close,
  operations,
  options: { ...options('timeout_ms'), createProducer: PRODUCER_RETRIES },
  rawCalls,
  records: ['headers'],
  code,
  named
})
