// The calls of kafkajs's Admin for topics, configs, groups and offsets. Most return nothing and throw a failure.

import {
  ascending, byTopic, elements, filterParts, Returned, ruleParts, rulesOf, Unsupported
} from './lines.mjs'

const KINDS = { topic: 2, broker: 4 }

/** `asked(work)` calls the connected Admin; `timeout()` is that of `connect`. */
export const administration = (asked, timeout) => ({
  async create_partitions({ counts }) {
    const topicPartitions = Object.entries(counts).map(([topic, count]) => ({ topic, count }))
    const created = await asked(admin => admin.createPartitions({ topicPartitions, timeout: timeout() }))
    return new Returned(created, null)
  },

  async delete_topics({ topics }) {
    const deleted = await asked(admin => admin.deleteTopics({ topics, timeout: timeout() }))
    return new Returned(deleted, null)
  },

  async delete_records({ offsets }) {
    const topics = byTopic(Object.keys(offsets))
    if (topics.length > 1) throw new Unsupported('deleteTopicRecords takes one topic')
    const [[topic, indexes]] = topics
    const partitions = indexes.map(partition => ({ partition, offset: String(offsets[`${topic}-${partition}`]) }))
    return new Returned(await asked(admin => admin.deleteTopicRecords({ topic, partitions })), null)
  },

  /** It lists every partition of a topic, with its first and last offset. */
  async list_offsets({ times }) {
    const listed = []
    const found = {}
    for (const [topic, indexes] of byTopic(Object.keys(times))) {
      const rows = await asked(admin => admin.fetchTopicOffsets(topic))
      listed.push(rows)
      for (const { partition, high, low } of elements(rows)) {
        if (!indexes.includes(partition)) continue
        const time = times[`${topic}-${partition}`]
        if (typeof time === 'number') throw new Unsupported('fetchTopicOffsets takes no time')
        found[`${topic}-${partition}`] = Number(time === 'earliest' ? low : high)
      }
    }
    return new Returned(listed, found)
  },

  async describe_configs({ resources }) {
    const wanted = resources.map(each => {
      const [kind, name] = each.split(':')
      return { type: KINDS[kind], name }
    })
    const described = await asked(admin => admin.describeConfigs({ resources: wanted, includeSynonyms: false }))
    const found = {}
    for (const { resourceType, resourceName, configEntries } of elements(described?.resources)) {
      const values = elements(configEntries).map(entry => [entry.configName, entry.configValue])
      found[`${resourceType === KINDS.broker ? 'broker' : 'topic'}:${resourceName}`] = Object.fromEntries(values)
    }
    return new Returned(described, found)
  },

  async alter_configs() {
    throw new Unsupported('alterConfigs replaces all configs of a resource')
  },

  async list_groups({ states, types }) {
    if (states || types) throw new Unsupported('listGroups has no filter')
    const listed = await asked(admin => admin.listGroups())
    return new Returned(listed, { groups: ascending(elements(listed?.groups).map(each => each.groupId)), errors: [] })
  },

  async describe_groups({ groups }) {
    const described = await asked(admin => admin.describeGroups(groups))
    const found = {}
    for (const { errorCode, groupId, state, members } of elements(described?.groups)) {
      found[groupId] = errorCode ? byCode(errorCode) : { state, members: elements(members).length }
    }
    return new Returned(described, found)
  },

  async delete_groups({ groups }) {
    const deleted = await asked(admin => admin.deleteGroups(groups))
    const rows = elements(deleted).map(each => [each.groupId, each.errorCode ? byCode(each.errorCode) : null])
    return new Returned(deleted, Object.fromEntries(rows))
  },

  async alter_offsets({ group: groupId, offsets }) {
    const topics = byTopic(Object.keys(offsets))
    if (topics.length > 1) throw new Unsupported('setOffsets takes one topic')
    const [[topic, indexes]] = topics
    const partitions = indexes.map(partition => ({ partition, offset: String(offsets[`${topic}-${partition}`]) }))
    return new Returned(await asked(admin => admin.setOffsets({ groupId, topic, partitions })), null)
  },

  async create_acls({ acls }) {
    return new Returned(await asked(admin => admin.createAcls({ acl: acls.map(ruleParts) })), null)
  },

  async describe_acls({ filter }) {
    const described = await asked(admin => admin.describeAcls(filterParts(filter, undefined)))
    return new Returned(described, rulesOf(described?.resources))
  },

  async delete_acls({ filters }) {
    const wanted = filters.map(each => filterParts(each, undefined))
    const deleted = await asked(admin => admin.deleteAcls({ filters: wanted }))
    const rows = elements(deleted?.filterResponses).map(({ errorCode, errorMessage }, number) => [
      filters[number],
      errorCode ? { ...byCode(errorCode), message: errorMessage ?? '' } : null
    ])
    return new Returned(deleted, Object.fromEntries(rows))
  }
})

const byCode = code => ({ error: 'error_code', code, message: '' })

/** The groups or partitions that an error of these calls names, each with its error. */
export function namedItems(error, { offsets = {} }) {
  const groups = elements(error.groups).map(each => [each.groupId, each.error])
  const [[topic] = []] = byTopic(Object.keys(offsets)) // deleteTopicRecords takes one, and its error names none
  const rows = error.name === 'KafkaJSDeleteTopicRecordsError' ? elements(error.partitions) : []
  const partitions = rows.filter(each => each.error).map(each => [`${topic}-${each.partition}`, each.error])
  return Object.fromEntries([...groups, ...partitions])
}
