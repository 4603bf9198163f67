package main

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"kspec-adapters/lines"
)

// administration has the AdminClient's calls for topics, configs, groups and offsets.
func (a *adapter) administration() map[string]lines.Operation {
	return lines.WithContext(a.context, map[string]lines.Timed{
		"create_partitions": a.createPartitions,
		"delete_topics":     a.deleteTopics,
		"delete_records":    a.deleteRecords,
		"list_offsets":      a.listOffsets,
		"describe_configs":  a.describeConfigs,
		"alter_configs":     a.alterConfigs,
		"list_groups":       a.listGroups,
		"describe_groups":   a.describeGroups,
		"delete_groups":     a.deleteGroups,
		"alter_offsets":     a.alterOffsets,
		"create_acls":       a.createACLs,
		"describe_acls":     a.describeACLs,
		"delete_acls":       a.deleteACLs,
	})
}

// items are those that a call of the client returned, each with its key and what it has.
func items[T any](work func() ([]T, error), item func(T) (string, any)) (lines.Returned, error) {
	return lines.Answer(work, func(results []T) any {
		found := map[string]any{}
		for _, each := range results {
			key, value := item(each)
			found[key] = value
		}
		return found
	})
}

func (a *adapter) topicOutcome(each kafka.TopicResult) (string, any) {
	return each.Topic, a.outcome(each.Error)
}

func (a *adapter) createPartitions(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted := []kafka.PartitionsSpecification{}
	for topic, count := range call.Counts {
		wanted = append(wanted, kafka.PartitionsSpecification{Topic: topic, IncreaseTo: count})
	}
	return items(func() ([]kafka.TopicResult, error) {
		return a.admin.CreatePartitions(ctx, wanted)
	}, a.topicOutcome)
}

func (a *adapter) deleteTopics(ctx context.Context, call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	return items(func() ([]kafka.TopicResult, error) {
		return a.admin.DeleteTopics(ctx, names)
	}, a.topicOutcome)
}

func (a *adapter) partitionOutcome(each kafka.TopicPartition) (string, any) {
	if known, is := each.Error.(kafka.Error); is {
		return key(each), a.outcome(known)
	}
	if each.Error == nil {
		return key(each), nil
	}
	return key(each), a.server.Describe(each.Error, "")
}

func wantedOffsets(call lines.Call) []kafka.TopicPartition {
	wanted := []kafka.TopicPartition{}
	for partition, offset := range call.Offsets {
		topic := partition.Topic
		wanted = append(wanted, kafka.TopicPartition{
			Topic: &topic, Partition: partition.Index, Offset: kafka.Offset(*offset),
		})
	}
	return wanted
}

func (a *adapter) deleteRecords(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return items(func() ([]kafka.DeleteRecordsResult, error) {
		results, err := a.admin.DeleteRecords(ctx, wantedOffsets(call))
		return results.DeleteRecordsResults, err
	}, func(each kafka.DeleteRecordsResult) (string, any) {
		return a.partitionOutcome(each.TopicPartition)
	})
}

func (a *adapter) listOffsets(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted := map[kafka.TopicPartition]kafka.OffsetSpec{}
	for partition, time := range call.Times {
		at, err := lines.At(time)
		if err != nil {
			return lines.Returned{}, err
		}
		topic, spec := partition.Topic, kafka.OffsetSpec(at) // those of the client are the protocol's
		wanted[kafka.TopicPartition{Topic: &topic, Partition: partition.Index}] = spec
	}
	return lines.Answer(func() (kafka.ListOffsetsResult, error) {
		return a.admin.ListOffsets(ctx, wanted)
	}, func(results kafka.ListOffsetsResult) any {
		found := map[string]any{}
		for partition, info := range results.ResultInfos {
			found[key(partition)] = int64(info.Offset)
			if failed := a.outcome(info.Error); failed != nil {
				found[key(partition)] = failed
			}
		}
		return found
	})
}

func resource(wanted lines.Resource, entries []kafka.ConfigEntry) kafka.ConfigResource {
	kind := kafka.ResourceTopic
	if wanted.Kind == "broker" {
		kind = kafka.ResourceBroker
	}
	return kafka.ConfigResource{Type: kind, Name: wanted.Name, Config: entries}
}

func resourceKey(each kafka.ConfigResourceResult) string {
	kind := "topic"
	if each.Type == kafka.ResourceBroker {
		kind = "broker"
	}
	return lines.Resource{Kind: kind, Name: each.Name}.String()
}

func (a *adapter) describeConfigs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted := []kafka.ConfigResource{}
	for _, each := range call.Resources {
		wanted = append(wanted, resource(each, nil))
	}
	return items(func() ([]kafka.ConfigResourceResult, error) {
		return a.admin.DescribeConfigs(ctx, wanted)
	}, func(each kafka.ConfigResourceResult) (string, any) {
		if failed := a.outcome(each.Error); failed != nil {
			return resourceKey(each), failed
		}
		values := map[string]string{}
		for name, entry := range each.Config {
			values[name] = entry.Value
		}
		return resourceKey(each), values
	})
}

func (a *adapter) alterConfigs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted := []kafka.ConfigResource{}
	for each, values := range call.Configs {
		entries := []kafka.ConfigEntry{}
		for name, value := range values {
			entry := kafka.ConfigEntry{Name: name, IncrementalOperation: kafka.AlterConfigOpTypeDelete}
			if value != nil {
				entry.Value, entry.IncrementalOperation = *value, kafka.AlterConfigOpTypeSet
			}
			entries = append(entries, entry)
		}
		wanted = append(wanted, resource(each, entries))
	}
	return items(func() ([]kafka.ConfigResourceResult, error) {
		return a.admin.IncrementalAlterConfigs(ctx, wanted)
	}, func(each kafka.ConfigResourceResult) (string, any) {
		return resourceKey(each), a.outcome(each.Error)
	})
}

func (a *adapter) listGroups(ctx context.Context, call lines.Call) (lines.Returned, error) {
	var filters []kafka.ListConsumerGroupsAdminOption
	states, types := []kafka.ConsumerGroupState{}, []kafka.ConsumerGroupType{}
	for _, name := range call.States {
		state, err := kafka.ConsumerGroupStateFromString(name)
		if err != nil {
			return lines.Returned{}, err
		}
		states = append(states, state)
	}
	for _, name := range call.Types {
		types = append(types, kafka.ConsumerGroupTypeFromString(name))
	}
	if len(states) > 0 {
		filters = append(filters, kafka.SetAdminMatchConsumerGroupStates(states))
	}
	if len(types) > 0 {
		filters = append(filters, kafka.SetAdminMatchConsumerGroupTypes(types))
	}
	return lines.Answer(func() (kafka.ListConsumerGroupsResult, error) {
		return a.admin.ListConsumerGroups(ctx, filters...)
	}, func(listed kafka.ListConsumerGroupsResult) any {
		names, failed := []string{}, []*lines.Failure{}
		for _, group := range listed.Valid {
			names = append(names, group.GroupID)
		}
		for _, each := range listed.Errors {
			failed = append(failed, a.server.Describe(each, ""))
		}
		return lines.NewGroupList(names, failed)
	})
}

func (a *adapter) describeGroups(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return items(func() ([]kafka.ConsumerGroupDescription, error) {
		result, err := a.admin.DescribeConsumerGroups(ctx, call.Groups)
		return result.ConsumerGroupDescriptions, err
	}, func(each kafka.ConsumerGroupDescription) (string, any) {
		if failed := a.outcome(each.Error); failed != nil {
			return each.GroupID, failed
		}
		return each.GroupID, lines.GroupState{State: each.State.String(), Members: len(each.Members)}
	})
}

func (a *adapter) deleteGroups(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return items(func() ([]kafka.ConsumerGroupResult, error) {
		result, err := a.admin.DeleteConsumerGroups(ctx, call.Groups)
		return result.ConsumerGroupResults, err
	}, func(each kafka.ConsumerGroupResult) (string, any) { return each.Group, a.outcome(each.Error) })
}

func (a *adapter) alterOffsets(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted := []kafka.ConsumerGroupTopicPartitions{{Group: call.Group, Partitions: wantedOffsets(call)}}
	return items(func() ([]kafka.TopicPartition, error) {
		result, err := a.admin.AlterConsumerGroupOffsets(ctx, wanted)
		found := []kafka.TopicPartition{}
		for _, group := range result.ConsumerGroupsTopicPartitions {
			found = append(found, group.Partitions...)
		}
		return found, err
	}, a.partitionOutcome)
}
