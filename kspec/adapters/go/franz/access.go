package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kspec-adapters/lines"
)

// builder returns kadm's form of a rule or, with isFilter, of a filter. A method without arguments selects
// everything in a filter.
func builder(rule lines.ACL, isFilter bool) (*kadm.ACLBuilder, error) {
	operation, err := kmsg.ParseACLOperation(rule.Operation)
	if err != nil {
		return nil, err
	}
	b := kadm.NewACLs().Operations(operation).ResourcePatternType(kadm.ACLPatternLiteral)
	var principals, names []string
	if rule.Principal != "any" {
		principals = []string{rule.Principal}
	}
	if rule.Name != "" {
		names = []string{rule.Name}
	}
	hosts := []string{"*"}
	if isFilter {
		hosts = nil
	}
	if rule.Permission != "deny" {
		b.Allow(principals...).AllowHosts(hosts...)
	}
	if rule.Permission != "allow" {
		b.Deny(principals...).DenyHosts(hosts...)
	}
	switch rule.Kind {
	case "topic":
		b.Topics(names...)
	case "group":
		b.Groups(names...)
	case "any":
		b.AnyResource(names...)
	default:
		return nil, fmt.Errorf("%q is not a kind of resource", rule.Kind)
	}
	return b, nil
}

func rule(permission kmsg.ACLPermissionType, principal string, operation kadm.ACLOperation,
	kind kmsg.ACLResourceType, name string,
) lines.ACL {
	return lines.ACL{
		Permission: permission.String(), Principal: principal, Operation: operation.String(),
		Kind: kind.String(), Name: name,
	}
}

// It creates every combination of what a builder has, so each rule is a call.
func (a *adapter) createACLs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	found, raw := map[string]any{}, []kadm.CreateACLsResults{}
	for _, each := range call.ACLs {
		b, err := builder(each, false)
		if err != nil {
			return lines.Returned{}, err
		}
		results, err := lines.Ask(func() (kadm.CreateACLsResults, error) { return a.admin.CreateACLs(ctx, b) })
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, results)
		for _, one := range results {
			text := rule(one.Permission, one.Principal, one.Operation, one.Type, one.Name).String()
			found[text] = a.server.Describe(one.Err, one.ErrMessage)
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) describeACLs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	var filter lines.ACL
	if err := filter.UnmarshalText([]byte(call.Filter)); err != nil {
		return lines.Returned{}, err
	}
	b, err := builder(filter, true)
	if err != nil {
		return lines.Returned{}, err
	}
	return lines.Answer(func() (kadm.DescribeACLsResults, error) {
		results, err := a.admin.DescribeACLs(ctx, b)
		if err == nil && len(results) == 1 {
			err = results[0].Err
		}
		return results, err
	}, func(results kadm.DescribeACLsResults) any {
		var rules []lines.ACL
		for _, result := range results {
			for _, each := range result.Described {
				rules = append(rules, rule(each.Permission, each.Principal, each.Operation, each.Type, each.Name))
			}
		}
		return lines.ACLTexts(rules)
	})
}

func (a *adapter) deleteACLs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	found, raw := map[string]any{}, []kadm.DeleteACLsResults{}
	for _, filter := range call.Filters {
		b, err := builder(filter, true)
		if err != nil {
			return lines.Returned{}, err
		}
		results, err := lines.Ask(func() (kadm.DeleteACLsResults, error) { return a.admin.DeleteACLs(ctx, b) })
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, results)
		for _, result := range results {
			found[filter.String()] = a.server.Describe(result.Err, result.ErrMessage)
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) describeLogDirs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	found, raw := map[string]any{}, map[int32]kadm.DescribedLogDirs{}
	for _, broker := range call.Brokers {
		name := strconv.Itoa(int(broker))
		described, err := lines.Ask(func() (kadm.DescribedLogDirs, error) {
			return a.admin.DescribeBrokerLogDirs(ctx, broker, nil)
		})
		if err != nil {
			found[name] = a.server.Describe(lines.Cause(err), "")
			continue
		}
		raw[broker] = described
		for _, directory := range described {
			var partitions []lines.Partition
			directory.Topics.Each(func(each kadm.DescribedLogDirPartition) {
				partitions = append(partitions, lines.Partition{Topic: each.Topic, Index: each.Partition})
			})
			found[name+":"+directory.Dir] = lines.Keys(partitions)
			if directory.Err != nil {
				found[name+":"+directory.Dir] = a.server.Describe(directory.Err, "")
			}
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) alterLogDirs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	found, raw := map[string]any{}, []kadm.AlterReplicaLogDirsResponses{}
	for replica, path := range call.Moves {
		topics := kadm.TopicsSet{}
		topics.Add(replica.Partition.Topic, replica.Partition.Index)
		responses, err := lines.Ask(func() (kadm.AlterReplicaLogDirsResponses, error) {
			return a.admin.AlterBrokerReplicaLogDirs(ctx, replica.Broker, kadm.AlterReplicaLogDirsReq{path: topics})
		})
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, responses)
		responses.Each(func(each kadm.AlterReplicaLogDirsResponse) {
			found[replica.String()] = a.server.Describe(each.Err, "")
		})
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func entityText(entity kadm.ClientQuotaEntity) string {
	var parts []string
	for _, each := range entity {
		name := ""
		if each.Name != nil {
			name = *each.Name
		}
		parts = append(parts, each.Type+":"+name)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func (a *adapter) alterQuotas(ctx context.Context, call lines.Call) (lines.Returned, error) {
	var entries []kadm.AlterClientQuotaEntry
	for entity, values := range call.Quotas {
		component := kadm.ClientQuotaEntityComponent{Type: entity.Type}
		if entity.Name != "" {
			component.Name = &entity.Name
		}
		entry := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{component}}
		for name, value := range values {
			op := kadm.AlterClientQuotaOp{Key: name, Remove: value == nil}
			if value != nil {
				op.Value = *value
			}
			entry.Ops = append(entry.Ops, op)
		}
		entries = append(entries, entry)
	}
	return lines.Answer(func() (kadm.AlteredClientQuotas, error) {
		return a.admin.AlterClientQuotas(ctx, entries)
	}, func(altered kadm.AlteredClientQuotas) any {
		found := map[string]any{}
		for _, each := range altered {
			found[entityText(each.Entity)] = a.server.Describe(each.Err, each.ErrMessage)
		}
		return found
	})
}

func (a *adapter) describeQuotas(ctx context.Context, call lines.Call) (lines.Returned, error) {
	var entity lines.Entity
	_ = entity.UnmarshalText([]byte(call.Filter))
	component := kadm.DescribeClientQuotaComponent{Type: entity.Type}
	switch entity.Name {
	case "":
		component.MatchType = kmsg.QuotasMatchTypeDefault
	case "*":
		component.MatchType = kmsg.QuotasMatchTypeAny
	default:
		component.MatchName, component.MatchType = &entity.Name, kmsg.QuotasMatchTypeExact
	}
	return lines.Answer(func() (kadm.DescribedClientQuotas, error) {
		return a.admin.DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{component})
	}, func(described kadm.DescribedClientQuotas) any {
		found := map[string]map[string]float64{}
		for _, each := range described {
			values := map[string]float64{}
			for _, one := range each.Values {
				values[one.Key] = one.Value
			}
			found[entityText(each.Entity)] = values
		}
		return found
	})
}
