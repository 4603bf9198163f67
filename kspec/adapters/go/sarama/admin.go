package main

import (
	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

// administration has the calls for topics, configs, groups and offsets. Many take one item per call.
func (a *adapter) administration() map[string]lines.Operation {
	return map[string]lines.Operation{
		"create_partitions": a.createPartitions,
		"delete_topics":     a.deleteTopics,
		"delete_records":    a.deleteRecords,
		"list_offsets":      a.listOffsets,
		"describe_configs":  a.describeConfigs,
		"alter_configs":     a.alterConfigs,
		"list_groups":       a.listGroups,
		"describe_groups":   a.describeGroups,
		"delete_groups":     a.deleteGroups,
		"delete_offsets":    a.deleteOffsets,
		"alter_offsets":     a.alterOffsets,

		"create_acls":       a.createACLs,
		"describe_acls":     a.describeACLs,
		"delete_acls":       a.deleteACLs,
		"describe_log_dirs": a.describeLogDirs,
		"alter_quotas":      a.alterQuotas,
		"describe_quotas":   a.describeQuotas,
	}
}

// outcomes makes one call of the client for each item.
func outcomes[T any](a *adapter, items []T, key func(T) string, work func(T) error) (lines.Returned, error) {
	found, raw := map[string]any{}, map[string]error{}
	for _, item := range items {
		_, err := lines.Ask(func() (any, error) { return nil, work(item) })
		raw[key(item)] = lines.Cause(err)
		found[key(item)] = a.server.Describe(lines.Cause(err), "")
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func keys[K comparable, V any](items map[K]V) []K {
	var found []K
	for key := range items {
		found = append(found, key)
	}
	return found
}

func itself(name string) string { return name }

func (a *adapter) createPartitions(call lines.Call) (lines.Returned, error) {
	return outcomes(a, keys(call.Counts), itself, func(topic string) error {
		return a.admin.CreatePartitions(topic, int32(call.Counts[topic]), nil, false)
	})
}

func (a *adapter) deleteTopics(call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	return outcomes(a, names, itself, func(topic string) error { return a.admin.DeleteTopic(topic) })
}

// It returns one error for all partitions of a topic, which may name those that failed.
func (a *adapter) deleteRecords(call lines.Call) (lines.Returned, error) {
	byTopic := map[string]map[int32]int64{}
	for partition, offset := range call.Offsets {
		if byTopic[partition.Topic] == nil {
			byTopic[partition.Topic] = map[int32]int64{}
		}
		byTopic[partition.Topic][partition.Index] = *offset
	}
	for topic, offsets := range byTopic {
		_, err := lines.Ask(func() (any, error) { return nil, a.admin.DeleteRecords(topic, offsets) })
		if err != nil {
			return lines.Returned{}, lines.Raised{Err: lines.Cause(err), Partitions: a.named(lines.Cause(err))}
		}
	}
	return lines.Returned{}, nil
}

type listedOffsets = map[string]map[int32]*sarama.OffsetResult

func (a *adapter) listOffsets(call lines.Call) (lines.Returned, error) {
	wanted := map[string]map[int32]int64{}
	for partition, time := range call.Times {
		at, err := lines.At(time)
		if err != nil {
			return lines.Returned{}, err
		}
		if wanted[partition.Topic] == nil {
			wanted[partition.Topic] = map[int32]int64{}
		}
		wanted[partition.Topic][partition.Index] = at // OffsetNewest and OffsetOldest are those of the protocol
	}
	listed, err := lines.Ask(func() (listedOffsets, error) { return a.admin.ListOffsets(wanted, nil) })
	if err != nil {
		return lines.Returned{}, err
	}
	found, raw := map[string]any{}, map[string]sarama.OffsetResult{}
	for topic, partitions := range listed {
		for index, result := range partitions {
			key := lines.Partition{Topic: topic, Index: index}.String()
			raw[key] = *result
			found[key] = result.Offset
			if result.Err != nil && result.Err != sarama.ErrNoError {
				found[key] = a.server.Describe(result.Err, "")
			}
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

var kinds = map[string]sarama.ConfigResourceType{"topic": sarama.TopicResource, "broker": sarama.BrokerResource}

func (a *adapter) describeConfigs(call lines.Call) (lines.Returned, error) {
	var wanted []*sarama.ConfigResource
	for _, each := range call.Resources {
		wanted = append(wanted, &sarama.ConfigResource{Type: kinds[each.Kind], Name: each.Name})
	}
	results, err := lines.Ask(func() ([]*sarama.ConfigResourceResult, error) {
		return a.admin.DescribeConfigs(wanted, sarama.DescribeConfigsOptions{})
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found, raw := map[string]any{}, []sarama.ConfigResourceResult{}
	for _, result := range results {
		raw = append(raw, *result)
		kind := "topic"
		if result.Type == sarama.BrokerResource {
			kind = "broker"
		}
		values := map[string]string{}
		for _, entry := range result.Configs {
			values[entry.Name] = entry.Value
		}
		key := lines.Resource{Kind: kind, Name: result.Name}.String()
		found[key] = values
		if result.ErrorCode != sarama.ErrNoError {
			found[key] = a.server.Describe(result.ErrorCode, result.ErrorMsg)
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) alterConfigs(call lines.Call) (lines.Returned, error) {
	return outcomes(a, keys(call.Configs), lines.Resource.String, func(resource lines.Resource) error {
		entries := map[string]sarama.IncrementalAlterConfigsEntry{}
		for name, value := range call.Configs[resource] {
			entry := sarama.IncrementalAlterConfigsEntry{
				Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value,
			}
			if value == nil {
				entry.Operation = sarama.IncrementalAlterConfigsOperationDelete
			}
			entries[name] = entry
		}
		return a.admin.IncrementalAlterConfig(kinds[resource.Kind], resource.Name, entries, false)
	})
}

func (a *adapter) listGroups(call lines.Call) (lines.Returned, error) {
	if len(call.States) > 0 || len(call.Types) > 0 {
		return lines.Returned{}, lines.Unsupported("ListConsumerGroups has no filter")
	}
	groups, err := lines.Ask(a.admin.ListConsumerGroups)
	var failed []*lines.Failure
	if err != nil {
		if len(groups) == 0 {
			return lines.Returned{}, err
		}
		failed = append(failed, a.server.Describe(lines.Cause(err), "")) // it comes beside the groups
	}
	return lines.Returned{Raw: groups, Result: lines.NewGroupList(keys(groups), failed)}, nil
}

func (a *adapter) describeGroups(call lines.Call) (lines.Returned, error) {
	groups, err := lines.Ask(func() ([]*sarama.GroupDescription, error) {
		return a.admin.DescribeConsumerGroups(call.Groups)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found, raw := map[string]any{}, []sarama.GroupDescription{}
	for _, group := range groups {
		raw = append(raw, *group)
		found[group.GroupId] = lines.GroupState{State: group.State, Members: len(group.Members)}
		if group.Err != sarama.ErrNoError {
			found[group.GroupId] = a.server.Describe(group.Err, "")
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) deleteGroups(call lines.Call) (lines.Returned, error) {
	return outcomes(a, call.Groups, itself, func(group string) error { return a.admin.DeleteConsumerGroup(group) })
}

func (a *adapter) deleteOffsets(call lines.Call) (lines.Returned, error) {
	return outcomes(a, call.Partitions, lines.Partition.String, func(partition lines.Partition) error {
		return a.admin.DeleteConsumerGroupOffset(call.Group, partition.Topic, partition.Index)
	})
}

func (a *adapter) alterOffsets(call lines.Call) (lines.Returned, error) {
	wanted := map[string]map[int32]sarama.OffsetAndMetadata{}
	for partition, offset := range call.Offsets {
		if wanted[partition.Topic] == nil {
			wanted[partition.Topic] = map[int32]sarama.OffsetAndMetadata{}
		}
		wanted[partition.Topic][partition.Index] = sarama.OffsetAndMetadata{Offset: *offset, LeaderEpoch: -1}
	}
	response, err := lines.Ask(func() (*sarama.OffsetCommitResponse, error) {
		return a.admin.AlterConsumerGroupOffsets(call.Group, wanted, nil)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for topic, partitions := range response.Errors {
		for index, code := range partitions {
			key := lines.Partition{Topic: topic, Index: index}.String()
			found[key] = nil
			if code != sarama.ErrNoError {
				found[key] = a.server.Describe(code, "")
			}
		}
	}
	return lines.Returned{Raw: *response, Result: found}, nil
}
