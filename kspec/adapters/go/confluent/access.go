package main

import (
	"context"
	"errors"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"kspec-adapters/lines"
)

// binding returns the client's form of a rule or a filter, which is the same type: an empty text in a
// filter is any.
func binding(rule lines.ACL, host string) (kafka.ACLBinding, error) {
	permission, badPermission := kafka.ACLPermissionTypeFromString(rule.Permission)
	operation, badOperation := kafka.ACLOperationFromString(rule.Operation)
	kind, badKind := kafka.ResourceTypeFromString(rule.Kind)
	if rule.Principal == "any" {
		rule.Principal = ""
	}
	return kafka.ACLBinding{
		Type: kind, Name: rule.Name, ResourcePatternType: kafka.ResourcePatternTypeLiteral,
		Principal: rule.Principal, Host: host, Operation: operation, PermissionType: permission,
	}, errors.Join(badPermission, badOperation, badKind)
}

func bindings(rules []lines.ACL, host string) ([]kafka.ACLBinding, error) {
	wanted := []kafka.ACLBinding{}
	for _, each := range rules {
		one, err := binding(each, host)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, one)
	}
	return wanted, nil
}

func ruleOf(each kafka.ACLBinding) lines.ACL {
	return lines.ACL{
		Permission: each.PermissionType.String(), Principal: each.Principal,
		Operation: each.Operation.String(), Kind: each.Type.String(), Name: each.Name,
	}
}

// inOrder returns the outcomes by rule or filter. The client's results have their order alone.
func inOrder[T any](a *adapter, rules []lines.ACL, results []T, failed func(T) kafka.Error) map[string]any {
	found := map[string]any{}
	for number, each := range results {
		if number < len(rules) {
			found[rules[number].String()] = a.outcome(failed(each))
		}
	}
	return found
}

func (a *adapter) createACLs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted, err := bindings(call.ACLs, "*")
	if err != nil {
		return lines.Returned{}, err
	}
	return lines.Answer(func() ([]kafka.CreateACLResult, error) {
		return a.admin.CreateACLs(ctx, wanted)
	}, func(results []kafka.CreateACLResult) any {
		return inOrder(a, call.ACLs, results, func(each kafka.CreateACLResult) kafka.Error { return each.Error })
	})
}

func (a *adapter) describeACLs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	var filter lines.ACL
	if err := filter.UnmarshalText([]byte(call.Filter)); err != nil {
		return lines.Returned{}, err
	}
	wanted, err := binding(filter, "")
	if err != nil {
		return lines.Returned{}, err
	}
	return lines.Answer(func() (*kafka.DescribeACLsResult, error) {
		result, err := a.admin.DescribeACLs(ctx, wanted)
		if err == nil && result.Error.Code() != kafka.ErrNoError {
			err = result.Error
		}
		return result, err
	}, func(result *kafka.DescribeACLsResult) any {
		var rules []lines.ACL
		for _, each := range result.ACLBindings {
			rules = append(rules, ruleOf(each))
		}
		return lines.ACLTexts(rules)
	})
}

func (a *adapter) deleteACLs(ctx context.Context, call lines.Call) (lines.Returned, error) {
	wanted, err := bindings(call.Filters, "")
	if err != nil {
		return lines.Returned{}, err
	}
	return lines.Answer(func() ([]kafka.DeleteACLsResult, error) {
		return a.admin.DeleteACLs(ctx, wanted)
	}, func(results []kafka.DeleteACLsResult) any {
		return inOrder(a, call.Filters, results, func(each kafka.DeleteACLsResult) kafka.Error { return each.Error })
	})
}
