package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

// parsed returns sarama's form of the parts of a rule or a filter that have names.
func parsed(rule lines.ACL) (
	permission sarama.AclPermissionType, operation sarama.AclOperation, kind sarama.AclResourceType, err error,
) {
	err = errors.Join(
		permission.UnmarshalText([]byte(rule.Permission)),
		operation.UnmarshalText([]byte(rule.Operation)),
		kind.UnmarshalText([]byte(rule.Kind)),
	)
	return permission, operation, kind, err
}

func filterOf(rule lines.ACL) (sarama.AclFilter, error) {
	permission, operation, kind, err := parsed(rule)
	filter := sarama.AclFilter{
		ResourceType: kind, ResourcePatternTypeFilter: sarama.AclPatternLiteral,
		Operation: operation, PermissionType: permission,
	}
	if rule.Name != "" {
		filter.ResourceName = &rule.Name
	}
	if rule.Principal != "any" {
		filter.Principal = &rule.Principal
	}
	return filter, err
}

func ruleOf(resource sarama.Resource, acl sarama.Acl) lines.ACL {
	return lines.ACL{
		Permission: acl.PermissionType.String(), Principal: acl.Principal, Operation: acl.Operation.String(),
		Kind: resource.ResourceType.String(), Name: resource.ResourceName,
	}
}

// It returns one error for all rules.
func (a *adapter) createACLs(call lines.Call) (lines.Returned, error) {
	var wanted []*sarama.ResourceAcls
	for _, each := range call.ACLs {
		permission, operation, kind, err := parsed(each)
		if err != nil {
			return lines.Returned{}, err
		}
		wanted = append(wanted, &sarama.ResourceAcls{
			Resource: sarama.Resource{
				ResourceType: kind, ResourceName: each.Name, ResourcePatternType: sarama.AclPatternLiteral,
			},
			Acls: []*sarama.Acl{{
				Principal: each.Principal, Host: "*", Operation: operation, PermissionType: permission,
			}},
		})
	}
	_, err := lines.Ask(func() (any, error) { return nil, a.admin.CreateACLs(wanted) })
	return lines.Returned{}, err
}

func (a *adapter) describeACLs(call lines.Call) (lines.Returned, error) {
	var rule lines.ACL
	if err := rule.UnmarshalText([]byte(call.Filter)); err != nil {
		return lines.Returned{}, err
	}
	filter, err := filterOf(rule)
	if err != nil {
		return lines.Returned{}, err
	}
	listed, err := lines.Ask(func() ([]sarama.ResourceAcls, error) { return a.admin.ListAcls(filter) })
	if err != nil {
		return lines.Returned{}, err
	}
	var rules []lines.ACL
	for _, each := range listed {
		for _, acl := range each.Acls {
			rules = append(rules, ruleOf(each.Resource, *acl))
		}
	}
	return lines.Returned{Raw: listed, Result: lines.ACLTexts(rules)}, nil
}

func (a *adapter) deleteACLs(call lines.Call) (lines.Returned, error) {
	for _, each := range call.Filters {
		if _, err := filterOf(each); err != nil {
			return lines.Returned{}, err
		}
	}
	return outcomes(a, call.Filters, lines.ACL.String, func(rule lines.ACL) error {
		filter, _ := filterOf(rule)
		_, err := a.admin.DeleteACL(filter, false)
		return err
	})
}

type logDirs = map[int32][]sarama.DescribeLogDirsResponseDirMetadata

func (a *adapter) describeLogDirs(call lines.Call) (lines.Returned, error) {
	described, err := lines.Ask(func() (logDirs, error) { return a.admin.DescribeLogDirs(call.Brokers) })
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for broker, directories := range described {
		for _, directory := range directories {
			key := strconv.Itoa(int(broker)) + ":" + directory.Path
			partitions := []lines.Partition{}
			for _, topic := range directory.Topics {
				for _, each := range topic.Partitions {
					partitions = append(partitions, lines.Partition{Topic: topic.Topic, Index: each.PartitionID})
				}
			}
			found[key] = lines.Keys(partitions)
			if directory.ErrorCode != sarama.ErrNoError {
				found[key] = a.server.Describe(directory.ErrorCode, "")
			}
		}
	}
	return lines.Returned{Raw: described, Result: found}, nil
}

// It changes one value of one entity per call.
func (a *adapter) alterQuotas(call lines.Call) (lines.Returned, error) {
	return outcomes(a, keys(call.Quotas), lines.Entity.String, func(entity lines.Entity) error {
		component := sarama.QuotaEntityComponent{
			EntityType: sarama.QuotaEntityType(entity.Type), MatchType: sarama.QuotaMatchExact, Name: entity.Name,
		}
		if entity.Name == "" {
			component.MatchType = sarama.QuotaMatchDefault
		}
		for name, value := range call.Quotas[entity] {
			op := sarama.ClientQuotasOp{Key: name, Remove: value == nil}
			if value != nil {
				op.Value = *value
			}
			if err := a.admin.AlterClientQuotas([]sarama.QuotaEntityComponent{component}, op, false); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *adapter) describeQuotas(call lines.Call) (lines.Returned, error) {
	var entity lines.Entity
	_ = entity.UnmarshalText([]byte(call.Filter))
	filter := sarama.QuotaFilterComponent{EntityType: sarama.QuotaEntityType(entity.Type)}
	switch entity.Name {
	case "":
		filter.MatchType = sarama.QuotaMatchDefault
	case "*":
		filter.MatchType = sarama.QuotaMatchAny
	default:
		filter.MatchType, filter.Match = sarama.QuotaMatchExact, entity.Name
	}
	described, err := lines.Ask(func() ([]sarama.DescribeClientQuotasEntry, error) {
		return a.admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{filter}, true)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]map[string]float64{}
	for _, each := range described {
		var parts []string
		for _, one := range each.Entity {
			parts = append(parts, string(one.EntityType)+":"+one.Name)
		}
		slices.Sort(parts)
		found[strings.Join(parts, ",")] = each.Values
	}
	return lines.Returned{Raw: described, Result: found}, nil
}
