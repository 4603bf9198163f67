package main

import (
	"context"

	"github.com/segmentio/kafka-go"

	"kspec-adapters/lines"
)

// administration has the Client's calls for topics, configs, groups and offsets.
func (a *adapter) administration() map[string]lines.Operation {
	return map[string]lines.Operation{
		"create_partitions": a.createPartitions,
		"delete_topics":     a.deleteTopics,
		"list_offsets":      a.listOffsets,
		"describe_configs":  a.describeConfigs,
		"alter_configs":     a.alterConfigs,
		"list_groups":       a.listGroups,
		"describe_groups":   a.describeGroups,
		"delete_groups":     a.deleteGroups,
		"delete_offsets":    a.deleteOffsets,
		"alter_offsets":     a.alterOffsets,

		"create_acls":     a.createACLs,
		"describe_acls":   a.describeACLs,
		"delete_acls":     a.deleteACLs,
		"alter_quotas":    a.alterQuotas,
		"describe_quotas": a.describeQuotas,
	}
}

// call makes a call of the client and describes its response. failed is an error in the response, for
// which the client returns none.
func call[Q, R any](
	work func(context.Context, *Q) (*R, error), request *Q, failed func(*R) error, result func(*R) any,
) (lines.Returned, error) {
	return lines.Answer(func() (response R, err error) {
		found, err := work(context.Background(), request)
		if err != nil {
			return response, err
		}
		if failed != nil {
			err = failed(found)
		}
		return *found, err
	}, func(response R) any { return result(&response) })
}

func (a *adapter) byName(errors map[string]error) any {
	found := map[string]any{}
	for name, err := range errors {
		found[name] = a.server.Describe(err, "")
	}
	return found
}

func key(topic string, index int) string {
	return lines.Partition{Topic: topic, Index: int32(index)}.String()
}

func (a *adapter) createPartitions(said lines.Call) (lines.Returned, error) {
	request := &kafka.CreatePartitionsRequest{}
	for topic, count := range said.Counts {
		request.Topics = append(request.Topics, kafka.TopicPartitionsConfig{Name: topic, Count: int32(count)})
	}
	return call(a.client.CreatePartitions, request, nil,
		func(r *kafka.CreatePartitionsResponse) any { return a.byName(r.Errors) })
}

func (a *adapter) deleteTopics(said lines.Call) (lines.Returned, error) {
	names, err := said.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	return call(a.client.DeleteTopics, &kafka.DeleteTopicsRequest{Topics: names}, nil,
		func(r *kafka.DeleteTopicsResponse) any { return a.byName(r.Errors) })
}

func (a *adapter) listOffsets(said lines.Call) (lines.Returned, error) {
	request, times := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}, map[string]int64{}
	for partition, time := range said.Times {
		at, err := lines.At(time)
		if err != nil {
			return lines.Returned{}, err
		}
		times[partition.String()] = at
		request.Topics[partition.Topic] = append(request.Topics[partition.Topic],
			kafka.OffsetRequest{Partition: int(partition.Index), Timestamp: at})
	}
	return call(a.client.ListOffsets, request, nil, func(r *kafka.ListOffsetsResponse) any {
		found := map[string]any{}
		for topic, partitions := range r.Topics {
			for _, each := range partitions {
				name := key(topic, each.Partition)
				switch {
				case each.Error != nil:
					found[name] = a.server.Describe(each.Error, "")
				case times[name] == lines.Latest:
					found[name] = each.LastOffset
				case times[name] == lines.Earliest:
					found[name] = each.FirstOffset
				default:
					for offset := range each.Offsets {
						found[name] = offset
					}
				}
			}
		}
		return found
	})
}

var kinds = map[string]kafka.ResourceType{"topic": kafka.ResourceTypeTopic, "broker": kafka.ResourceTypeBroker}

func resourceKey(kind kafka.ResourceType, name string) string {
	if kind == kafka.ResourceTypeBroker {
		return lines.Resource{Kind: "broker", Name: name}.String()
	}
	return lines.Resource{Kind: "topic", Name: name}.String()
}

func (a *adapter) describeConfigs(said lines.Call) (lines.Returned, error) {
	request := &kafka.DescribeConfigsRequest{}
	for _, each := range said.Resources {
		request.Resources = append(request.Resources, kafka.DescribeConfigRequestResource{
			ResourceType: kinds[each.Kind], ResourceName: each.Name,
		})
	}
	return call(a.client.DescribeConfigs, request, nil, func(r *kafka.DescribeConfigsResponse) any {
		found := map[string]any{}
		for _, each := range r.Resources {
			name := resourceKey(kafka.ResourceType(each.ResourceType), each.ResourceName)
			if each.Error != nil {
				found[name] = a.server.Describe(each.Error, "")
				continue
			}
			values := map[string]string{}
			for _, entry := range each.ConfigEntries {
				values[entry.ConfigName] = entry.ConfigValue
			}
			found[name] = values
		}
		return found
	})
}

func (a *adapter) alterConfigs(said lines.Call) (lines.Returned, error) {
	request := &kafka.IncrementalAlterConfigsRequest{}
	for each, values := range said.Configs {
		resource := kafka.IncrementalAlterConfigsRequestResource{
			ResourceType: kinds[each.Kind], ResourceName: each.Name,
		}
		for name, value := range values {
			config := kafka.IncrementalAlterConfigsRequestConfig{
				Name: name, ConfigOperation: kafka.ConfigOperationDelete,
			}
			if value != nil {
				config.Value, config.ConfigOperation = *value, kafka.ConfigOperationSet
			}
			resource.Configs = append(resource.Configs, config)
		}
		request.Resources = append(request.Resources, resource)
	}
	return call(a.client.IncrementalAlterConfigs, request, nil, func(r *kafka.IncrementalAlterConfigsResponse) any {
		found := map[string]any{}
		for _, each := range r.Resources {
			found[resourceKey(each.ResourceType, each.ResourceName)] = a.server.Describe(each.Error, "")
		}
		return found
	})
}

func (a *adapter) listGroups(said lines.Call) (lines.Returned, error) {
	if len(said.States) > 0 || len(said.Types) > 0 {
		return lines.Returned{}, lines.Unsupported("ListGroups has no filter")
	}
	failed := func(r *kafka.ListGroupsResponse) error { return r.Error }
	return call(a.client.ListGroups, &kafka.ListGroupsRequest{}, failed, func(r *kafka.ListGroupsResponse) any {
		names := []string{}
		for _, group := range r.Groups {
			names = append(names, group.GroupID)
		}
		return lines.NewGroupList(names, nil)
	})
}

func (a *adapter) describeGroups(said lines.Call) (lines.Returned, error) {
	request := &kafka.DescribeGroupsRequest{GroupIDs: said.Groups}
	return call(a.client.DescribeGroups, request, nil, func(r *kafka.DescribeGroupsResponse) any {
		found := map[string]any{}
		for _, each := range r.Groups {
			found[each.GroupID] = lines.GroupState{State: each.GroupState, Members: len(each.Members)}
			if each.Error != nil {
				found[each.GroupID] = a.server.Describe(each.Error, "")
			}
		}
		return found
	})
}

func (a *adapter) deleteGroups(said lines.Call) (lines.Returned, error) {
	return call(a.client.DeleteGroups, &kafka.DeleteGroupsRequest{GroupIDs: said.Groups}, nil,
		func(r *kafka.DeleteGroupsResponse) any { return a.byName(r.Errors) })
}

func (a *adapter) deleteOffsets(said lines.Call) (lines.Returned, error) {
	request := &kafka.OffsetDeleteRequest{GroupID: said.Group, Topics: map[string][]int{}}
	for _, each := range said.Partitions {
		request.Topics[each.Topic] = append(request.Topics[each.Topic], int(each.Index))
	}
	failed := func(r *kafka.OffsetDeleteResponse) error { return r.Error }
	return call(a.client.OffsetDelete, request, failed, func(r *kafka.OffsetDeleteResponse) any {
		found := map[string]any{}
		for topic, partitions := range r.Topics {
			for _, each := range partitions {
				found[key(topic, each.Partition)] = a.server.Describe(each.Error, "")
			}
		}
		return found
	})
}

func (a *adapter) alterOffsets(said lines.Call) (lines.Returned, error) {
	request := &kafka.OffsetCommitRequest{
		GroupID: said.Group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{},
	}
	for partition, offset := range said.Offsets {
		request.Topics[partition.Topic] = append(request.Topics[partition.Topic],
			kafka.OffsetCommit{Partition: int(partition.Index), Offset: *offset})
	}
	return call(a.client.OffsetCommit, request, nil, func(r *kafka.OffsetCommitResponse) any {
		found := map[string]any{}
		for topic, partitions := range r.Topics {
			for _, each := range partitions {
				found[key(topic, each.Partition)] = a.server.Describe(each.Error, "")
			}
		}
		return found
	})
}
