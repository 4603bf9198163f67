package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"

	"kspec-adapters/lines"
)

// administration has kadm's calls for topics, configs, groups and offsets.
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
		"delete_offsets":    a.deleteOffsets,
		"alter_offsets":     a.alterOffsets,

		"create_acls":       a.createACLs,
		"describe_acls":     a.describeACLs,
		"delete_acls":       a.deleteACLs,
		"describe_log_dirs": a.describeLogDirs,
		"alter_log_dirs":    a.alterLogDirs,
		"alter_quotas":      a.alterQuotas,
		"describe_quotas":   a.describeQuotas,
	})
}

func (a *adapter) createPartitions(ctx context.Context, call lines.Call) (lines.Returned, error) {
	found, raw := map[string]any{}, []kadm.CreatePartitionsResponses{}
	for topic, count := range call.Counts { // it takes one count for all topics of a call
		responses, err := lines.Ask(func() (kadm.CreatePartitionsResponses, error) {
			return a.admin.UpdatePartitions(ctx, count, topic)
		})
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, responses)
		for answered, response := range responses {
			found[answered] = a.server.Describe(response.Err, response.ErrMessage)
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) deleteTopics(ctx context.Context, call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	return lines.Answer(func() (kadm.DeleteTopicResponses, error) {
		return a.admin.DeleteTopics(ctx, names...)
	}, func(responses kadm.DeleteTopicResponses) any {
		found := map[string]any{}
		for name, response := range responses {
			found[name] = a.server.Describe(response.Err, response.ErrMessage)
		}
		return found
	})
}

func offsets(call lines.Call) kadm.Offsets {
	wanted := kadm.Offsets{}
	for partition, offset := range call.Offsets {
		wanted.AddOffset(partition.Topic, partition.Index, *offset, -1)
	}
	return wanted
}

func key(topic string, index int32) string {
	return lines.Partition{Topic: topic, Index: index}.String()
}

func (a *adapter) deleteRecords(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return lines.Answer(func() (kadm.DeleteRecordsResponses, error) {
		return a.admin.DeleteRecords(ctx, offsets(call))
	}, func(responses kadm.DeleteRecordsResponses) any {
		found := map[string]any{}
		responses.Each(func(each kadm.DeleteRecordsResponse) {
			found[key(each.Topic, each.Partition)] = a.server.Describe(each.Err, "")
		})
		return found
	})
}

func (a *adapter) listOffsets(ctx context.Context, call lines.Call) (lines.Returned, error) {
	// It lists every partition of topics, all at one time.
	times := map[int64][]lines.Partition{}
	for partition, time := range call.Times {
		at, err := lines.At(time)
		if err != nil {
			return lines.Returned{}, err
		}
		times[at] = append(times[at], partition)
	}
	found, raw := map[string]any{}, []kadm.ListedOffsets{}
	for at, partitions := range times {
		topics := kadm.TopicsSet{}
		for _, each := range partitions {
			topics.Add(each.Topic)
		}
		listed, err := lines.Ask(func() (kadm.ListedOffsets, error) {
			switch at {
			case lines.Latest:
				return a.admin.ListEndOffsets(ctx, topics.Topics()...)
			case lines.Earliest:
				return a.admin.ListStartOffsets(ctx, topics.Topics()...)
			default:
				return a.admin.ListOffsetsAfterMilli(ctx, at, topics.Topics()...)
			}
		})
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, listed)
		for _, each := range partitions {
			if offset, is := listed.Lookup(each.Topic, each.Index); is && offset.Err != nil {
				found[each.String()] = a.server.Describe(offset.Err, "")
			} else if is {
				found[each.String()] = offset.Offset
			}
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) describeConfigs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	var topics []string
	var brokers []int32
	for _, each := range call.Resources {
		if id, is := each.IsBroker(); is {
			brokers = append(brokers, id)
		} else {
			topics = append(topics, each.Name)
		}
	}
	found, raw := map[string]any{}, []kadm.ResourceConfigs{}
	describe := func(kind string, wanted bool, work func() (kadm.ResourceConfigs, error)) error {
		if !wanted {
			return nil
		}
		configs, err := lines.Ask(work)
		if err != nil {
			return err
		}
		raw = append(raw, configs)
		for _, each := range configs {
			name := lines.Resource{Kind: kind, Name: each.Name}.String()
			if each.Err != nil {
				found[name] = a.server.Describe(each.Err, each.ErrMessage)
				continue
			}
			values := map[string]*string{}
			for _, config := range each.Configs {
				values[config.Key] = config.Value
			}
			found[name] = values
		}
		return nil
	}
	err := errors.Join(
		describe("topic", topics != nil, func() (kadm.ResourceConfigs, error) {
			return a.admin.DescribeTopicConfigs(ctx, topics...)
		}),
		describe("broker", brokers != nil, func() (kadm.ResourceConfigs, error) {
			return a.admin.DescribeBrokerConfigs(ctx, brokers...)
		}),
	)
	return lines.Returned{Raw: raw, Result: found}, err
}

func (a *adapter) alterConfigs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	found, raw := map[string]any{}, []kadm.AlterConfigsResponses{}
	for resource, values := range call.Configs { // it takes the same changes for all resources of a call
		var changes []kadm.AlterConfig
		for name, value := range values {
			change := kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value}
			if value == nil {
				change.Op = kadm.DeleteConfig
			}
			changes = append(changes, change)
		}
		responses, err := lines.Ask(func() (kadm.AlterConfigsResponses, error) {
			if id, is := resource.IsBroker(); is {
				return a.admin.AlterBrokerConfigs(ctx, changes, id)
			}
			return a.admin.AlterTopicConfigs(ctx, changes, resource.Name)
		})
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, responses)
		for _, each := range responses {
			name := lines.Resource{Kind: resource.Kind, Name: each.Name}.String()
			found[name] = a.server.Describe(each.Err, each.ErrMessage)
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

// The error of brokers that gave no answer comes beside the groups of the others.
func (a *adapter) listGroups(ctx context.Context, call lines.Call) (lines.Returned, error) {
	listed, err := lines.Ask(func() (kadm.ListedGroups, error) {
		if len(call.Types) > 0 {
			return a.admin.ListGroupsByType(ctx, call.Types, call.States...)
		}
		return a.admin.ListGroups(ctx, call.States...)
	})
	var failed *kadm.ShardErrors
	var raised lines.Raised
	if err != nil && (!errors.As(err, &raised) || !errors.As(raised.Err, &failed) || failed.AllFailed) {
		return lines.Returned{}, err
	}
	var each []*lines.Failure
	if failed != nil {
		for _, one := range failed.Errs {
			each = append(each, a.server.Describe(one.Err, ""))
		}
	}
	return lines.Returned{Raw: listed, Result: lines.NewGroupList(listed.Groups(), each)}, nil
}

func (a *adapter) describeGroups(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return lines.Answer(func() (kadm.DescribedGroups, error) {
		return a.admin.DescribeGroups(ctx, call.Groups...)
	}, func(groups kadm.DescribedGroups) any {
		found := map[string]any{}
		for name, group := range groups {
			found[name] = lines.GroupState{State: group.State, Members: len(group.Members)}
			if group.Err != nil {
				found[name] = a.server.Describe(group.Err, group.ErrMessage)
			}
		}
		return found
	})
}

func (a *adapter) deleteGroups(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return lines.Answer(func() (kadm.DeleteGroupResponses, error) {
		return a.admin.DeleteGroups(ctx, call.Groups...)
	}, func(responses kadm.DeleteGroupResponses) any {
		found := map[string]any{}
		for name, response := range responses {
			found[name] = a.server.Describe(response.Err, response.ErrMessage)
		}
		return found
	})
}

func (a *adapter) deleteOffsets(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted := kadm.TopicsSet{}
	for _, each := range call.Partitions {
		wanted.Add(each.Topic, each.Index)
	}
	return lines.Answer(func() (kadm.DeleteOffsetsResponses, error) {
		return a.admin.DeleteOffsets(ctx, call.Group, wanted)
	}, func(responses kadm.DeleteOffsetsResponses) any {
		found := map[string]any{}
		for topic, partitions := range responses {
			for index, err := range partitions {
				found[key(topic, index)] = a.server.Describe(err, "")
			}
		}
		return found
	})
}

func (a *adapter) alterOffsets(ctx context.Context, call lines.Call) (lines.Returned, error) {
	return lines.Answer(func() (kadm.OffsetResponses, error) {
		return a.admin.CommitOffsets(ctx, call.Group, offsets(call))
	}, func(responses kadm.OffsetResponses) any {
		found := map[string]any{}
		responses.Each(func(each kadm.OffsetResponse) {
			found[key(each.Topic, each.Partition)] = a.server.Describe(each.Err, "")
		})
		return found
	})
}
