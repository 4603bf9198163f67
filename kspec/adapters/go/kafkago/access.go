package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/segmentio/kafka-go"

	"kspec-adapters/lines"
)

// How an entity of quotas is matched.
const (
	exactName = int8(iota)
	defaultName
	anyName
)

// parsed returns kafka-go's form of the parts of a rule or a filter that have names.
func parsed(rule lines.ACL) (
	permission kafka.ACLPermissionType, operation kafka.ACLOperationType, kind kafka.ResourceType, err error,
) {
	err = errors.Join(
		permission.UnmarshalText([]byte(rule.Permission)),
		operation.UnmarshalText([]byte(rule.Operation)),
		kind.UnmarshalText([]byte(rule.Kind)),
	)
	return permission, operation, kind, err
}

// filterOf returns a filter of access rules. In its strings "" is any.
func filterOf(rule lines.ACL) (kafka.ACLFilter, error) {
	permission, operation, kind, err := parsed(rule)
	filter := kafka.ACLFilter{
		ResourceTypeFilter: kind, ResourceNameFilter: rule.Name, ResourcePatternTypeFilter: kafka.PatternTypeLiteral,
		Operation: operation, PermissionType: permission,
	}
	if rule.Principal != "any" {
		filter.PrincipalFilter = rule.Principal
	}
	return filter, err
}

func (a *adapter) createACLs(said lines.Call) (lines.Returned, error) {
	request := &kafka.CreateACLsRequest{}
	for _, each := range said.ACLs {
		permission, operation, kind, err := parsed(each)
		if err != nil {
			return lines.Returned{}, err
		}
		request.ACLs = append(request.ACLs, kafka.ACLEntry{
			ResourceType: kind, ResourceName: each.Name, ResourcePatternType: kafka.PatternTypeLiteral,
			Principal: each.Principal, Host: "*", Operation: operation, PermissionType: permission,
		})
	}
	return call(a.client.CreateACLs, request, nil, func(r *kafka.CreateACLsResponse) any {
		found := map[string]any{}
		for number, each := range r.Errors {
			if number < len(said.ACLs) {
				found[said.ACLs[number].String()] = a.server.Describe(each, "")
			}
		}
		return found
	})
}

func (a *adapter) describeACLs(said lines.Call) (lines.Returned, error) {
	var rule lines.ACL
	if err := rule.UnmarshalText([]byte(said.Filter)); err != nil {
		return lines.Returned{}, err
	}
	filter, err := filterOf(rule)
	if err != nil {
		return lines.Returned{}, err
	}
	return call(a.client.DescribeACLs, &kafka.DescribeACLsRequest{Filter: filter},
		func(r *kafka.DescribeACLsResponse) error { return r.Error },
		func(r *kafka.DescribeACLsResponse) any {
			var rules []lines.ACL
			for _, resource := range r.Resources {
				for _, each := range resource.ACLs {
					rules = append(rules, lines.ACL{
						Permission: each.PermissionType.String(), Principal: each.Principal,
						Operation: each.Operation.String(),
						Kind:      resource.ResourceType.String(), Name: resource.ResourceName,
					})
				}
			}
			return lines.ACLTexts(rules)
		})
}

func (a *adapter) deleteACLs(said lines.Call) (lines.Returned, error) {
	request := &kafka.DeleteACLsRequest{}
	for _, each := range said.Filters {
		filter, err := filterOf(each)
		if err != nil {
			return lines.Returned{}, err
		}
		request.Filters = append(request.Filters, kafka.DeleteACLsFilter(filter))
	}
	return call(a.client.DeleteACLs, request, nil, func(r *kafka.DeleteACLsResponse) any {
		found := map[string]any{}
		for number, result := range r.Results {
			if number >= len(said.Filters) {
				break
			}
			found[said.Filters[number].String()] = a.server.Describe(result.Error, "")
		}
		return found
	})
}

func (a *adapter) alterQuotas(said lines.Call) (lines.Returned, error) {
	request := &kafka.AlterClientQuotasRequest{}
	for entity, values := range said.Quotas {
		entry := kafka.AlterClientQuotaEntry{
			Entities: []kafka.AlterClientQuotaEntity{{EntityType: entity.Type, EntityName: entity.Name}},
		}
		for name, value := range values {
			op := kafka.AlterClientQuotaOps{Key: name, Remove: value == nil}
			if value != nil {
				op.Value = *value
			}
			entry.Ops = append(entry.Ops, op)
		}
		request.Entries = append(request.Entries, entry)
	}
	return call(a.client.AlterClientQuotas, request, nil, func(r *kafka.AlterClientQuotasResponse) any {
		found := map[string]any{}
		for _, entry := range r.Entries {
			var parts []string
			for _, each := range entry.Entities {
				parts = append(parts, each.EntityType+":"+each.EntityName)
			}
			slices.Sort(parts)
			found[strings.Join(parts, ",")] = a.server.Describe(entry.Error, "")
		}
		return found
	})
}

func (a *adapter) describeQuotas(said lines.Call) (lines.Returned, error) {
	var entity lines.Entity
	_ = entity.UnmarshalText([]byte(said.Filter))
	component := kafka.DescribeClientQuotasRequestComponent{EntityType: entity.Type}
	switch entity.Name {
	case "":
		component.MatchType = defaultName
	case "*":
		component.MatchType = anyName
	default:
		component.MatchType, component.Match = exactName, entity.Name
	}
	request := &kafka.DescribeClientQuotasRequest{
		Components: []kafka.DescribeClientQuotasRequestComponent{component}, Strict: true,
	}
	return call(a.client.DescribeClientQuotas, request,
		func(r *kafka.DescribeClientQuotasResponse) error { return r.Error },
		func(r *kafka.DescribeClientQuotasResponse) any {
			found := map[string]map[string]float64{}
			for _, entry := range r.Entries {
				var parts []string
				for _, each := range entry.Entities {
					parts = append(parts, each.EntityType+":"+each.EntityName)
				}
				slices.Sort(parts)
				values := map[string]float64{}
				for _, each := range entry.Values {
					values[each.Key] = each.Value
				}
				found[strings.Join(parts, ",")] = values
			}
			return found
		})
}
