// The calls of @platformatic/kafka's Admin for topics, configs, groups and offsets. Those that change something
// return nothing and reject with an error, which has the answers of the brokers and the places of errors in them.

import { ascending, byTopic, elements, filterParts, Returned, ruleParts, rulesOf } from './lines.mjs'

const KINDS = { topic: 2, broker: 4 }
const TIMES = { latest: -1n, earliest: -2n }
const EXACT = 0
const DEFAULT_NAME = 1
const ANY_NAME = 2
const SET = 0
const DELETE = 1

const resource = text => {
  const [kind, name] = text.split(':')
  return { resourceType: KINDS[kind], resourceName: name }
}

const resourceKey = ({ resourceType, resourceName }) =>
  `${resourceType === KINDS.broker ? 'broker' : 'topic'}:${resourceName}`

/** 'PREPARING_REBALANCE' as 'PreparingRebalance', and back: the client has names of its own for states. */
const stateOf = name => name.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase())
const nameOf = state => state.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()

const topicsOf = (offsets, row) =>
  byTopic(Object.keys(offsets)).map(([name, indexes]) => ({
    name,
    ...row(indexes.map(partition => ({ partition, value: offsets[`${name}-${partition}`] })))
  }))

/** `asked(work)` calls the Admin. */
export const administration = asked => ({
  async create_partitions({ counts }) {
    const topics = Object.entries(counts).map(([name, count]) => ({ name, count }))
    return new Returned(await asked(admin => admin.createPartitions({ topics })), null)
  },

  async delete_topics({ topics }) {
    return new Returned(await asked(admin => admin.deleteTopics({ topics })), null)
  },

  async delete_records({ offsets }) {
    const topics = topicsOf(offsets, rows => ({
      partitions: rows.map(({ partition, value }) => ({ partition, offset: BigInt(value) }))
    }))
    return new Returned(await asked(admin => admin.deleteRecords({ topics })), null)
  },

  async list_offsets({ times }) {
    const topics = topicsOf(times, rows => ({
      partitions: rows.map(({ partition: partitionIndex, value }) => ({
        partitionIndex,
        timestamp: TIMES[value] ?? BigInt(value)
      }))
    }))
    const listed = await asked(admin => admin.listOffsets({ topics }))
    const found = {}
    for (const { name, partitions } of elements(listed)) {
      for (const row of elements(partitions)) found[`${name}-${row.partitionIndex}`] = Number(row.offset)
    }
    return new Returned(listed, found)
  },

  async describe_configs({ resources }) {
    const described = await asked(admin => admin.describeConfigs({ resources: resources.map(resource) }))
    const rows = elements(described).map(each => [
      resourceKey(each),
      Object.fromEntries(elements(each.configs).map(config => [config.name, config.value]))
    ])
    return new Returned(described, Object.fromEntries(rows))
  },

  async alter_configs({ configs }) {
    const resources = Object.entries(configs).map(([key, values]) => ({
      ...resource(key),
      configs: Object.entries(values).map(([name, value]) =>
        value === null ? { name, configOperation: DELETE } : { name, configOperation: SET, value }
      )
    }))
    return new Returned(await asked(admin => admin.incrementalAlterConfigs({ resources })), null)
  },

  async list_groups({ states, types }) {
    const wanted = { ...(states ? { states: states.map(nameOf) } : {}), ...(types ? { types } : {}) }
    const listed = await asked(admin => admin.listGroups(wanted))
    return new Returned(listed, { groups: ascending([...listed.keys()]), errors: [] })
  },

  async describe_groups({ groups }) {
    const described = await asked(admin => admin.describeGroups({ groups }))
    const rows = [...described].map(([name, { state, members }]) => [
      name,
      { state: stateOf(state), members: members.size }
    ])
    return new Returned(described, Object.fromEntries(rows))
  },

  async delete_groups({ groups }) {
    return new Returned(await asked(admin => admin.deleteGroups({ groups })), null)
  },

  async delete_offsets({ group: groupId, partitions }) {
    const topics = byTopic(partitions).map(([name, partitionIndexes]) => ({ name, partitionIndexes }))
    return new Returned(await asked(admin => admin.deleteConsumerGroupOffsets({ groupId, topics })), null)
  },

  async alter_offsets({ group: groupId, offsets }) {
    const topics = topicsOf(offsets, rows => ({
      partitionOffsets: rows.map(({ partition, value }) => ({ partition, offset: BigInt(value) }))
    }))
    return new Returned(await asked(admin => admin.alterConsumerGroupOffsets({ groupId, topics })), null)
  },

  async create_acls({ acls }) {
    return new Returned(await asked(admin => admin.createAcls({ creations: acls.map(ruleParts) })), null)
  },

  async describe_acls({ filter }) {
    const described = await asked(admin => admin.describeAcls({ filter: filterParts(filter, null) }))
    return new Returned(described, rulesOf(described))
  },

  /** It returns the rules that were deleted, but not by filter. */
  async delete_acls({ filters }) {
    const wanted = filters.map(each => filterParts(each, null))
    return new Returned(await asked(admin => admin.deleteAcls({ filters: wanted })), null)
  },

  /** It describes every broker. */
  async describe_log_dirs({ brokers }) {
    const described = await asked(admin => admin.describeLogDirs({ topics: null }))
    const rows = elements(described)
      .filter(({ broker }) => brokers.includes(Number(broker)))
      .flatMap(({ broker, results }) =>
        elements(results).map(({ logDir, topics }) => [
          `${broker}:${logDir}`,
          ascending(
            elements(topics).flatMap(({ name, partitions }) =>
              elements(partitions).map(({ partitionIndex }) => `${name}-${partitionIndex}`)
            )
          )
        ])
      )
    return new Returned(described, Object.fromEntries(rows))
  },

  async alter_quotas({ quotas }) {
    const entries = Object.entries(quotas).map(([text, values]) => {
      const [entityType, name] = text.split(':')
      const ops = Object.entries(values).map(([key, value]) =>
        value === null ? { key, remove: true } : { key, value, remove: false }
      )
      return { entities: [{ entityType, entityName: name || null }], ops }
    })
    const altered = await asked(admin => admin.alterClientQuotas({ entries }))
    const rows = elements(altered).map(({ errorCode, errorMessage, entity }) => [
      entityText(entity),
      errorCode ? { error: 'error_code', code: errorCode, message: errorMessage ?? '' } : null
    ])
    return new Returned(altered, Object.fromEntries(rows))
  },

  async describe_quotas({ filter }) {
    const [entityType, name] = filter.split(':')
    const match =
      name === '' ? { matchType: DEFAULT_NAME } : name === '*' ? { matchType: ANY_NAME } : { matchType: EXACT, match: name }
    const components = [{ entityType, ...match }]
    const described = await asked(admin => admin.describeClientQuotas({ components, strict: true }))
    const rows = elements(described).map(({ entity, values }) => [
      entityText(entity),
      Object.fromEntries(elements(values).map(({ key, value }) => [key, value]))
    ])
    return new Returned(described, Object.fromEntries(rows))
  }
})

const entityText = entity =>
  ascending(elements(entity).map(({ entityType, entityName }) => `${entityType}:${entityName ?? ''}`)).join(',')

function nameOfRow(row) {
  if (row?.entity) return entityText(row.entity)
  return row?.name ?? row?.groupId ?? (row?.resourceName === undefined ? undefined : resourceKey(row))
}

/** The items of answers that an error has errors of, each with its error: an error wraps those of brokers. */
export function namedItems(error, call = {}) {
  const found = {}
  const inOrder = call.acls ?? call.filters ?? [] // what answers have no names for
  for (const one of elements(error.errors)) {
    Object.assign(found, namedItems(one, call))
    const places = (one.path ?? '').split(/\W+/).filter(Boolean)
    const row = places.slice(0, 2).reduce((value, place) => value?.[place], error.response)
    const name = inOrder[places[1]] ?? nameOfRow(row)
    if (name === undefined) continue
    if (places.length === 2) found[name] = one
    const partition = places.slice(2).reduce((value, place) => value?.[place], row)
    if (partition?.partitionIndex !== undefined) found[`${name}-${partition.partitionIndex}`] = one
  }
  return found
}
