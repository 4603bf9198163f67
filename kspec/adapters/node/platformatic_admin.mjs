// The calls of @platformatic/kafka's Admin for topics, configs, groups and offsets. Those that change something
// return nothing and reject with an error, which has the answers of the brokers and the places of errors in them.

import { ascending, byTopic, elements, Returned } from './lines.mjs'

const KINDS = { topic: 2, broker: 4 }
const TIMES = { latest: -1n, earliest: -2n }
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
  }
})

/** The items of answers that an error has errors of, each with its error: an error wraps those of brokers. */
export function namedItems(error) {
  const found = {}
  for (const one of elements(error.errors)) {
    Object.assign(found, namedItems(one))
    const places = (one.path ?? '').split(/\W+/).filter(Boolean)
    const row = places.slice(0, 2).reduce((value, place) => value?.[place], error.response)
    const name = row?.name ?? row?.groupId ?? (row?.resourceName === undefined ? undefined : resourceKey(row))
    if (name === undefined) continue
    if (places.length === 2) found[name] = one
    const partition = places.slice(2).reduce((value, place) => value?.[place], row)
    if (partition?.partitionIndex !== undefined) found[`${name}-${partition.partitionIndex}`] = one
  }
  return found
}
