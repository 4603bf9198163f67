// Drives franz-go's kadm for the demo: BOOTSTRAP TIMEOUT_MS on the command line.
package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kproto-demo-clients/lines"
)

type driver struct {
	admin   *kadm.Client
	timeout time.Duration
}

func main() {
	bootstrap, timeout := lines.Arguments()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ClientID("demo-franz-go"),
		kgo.DialTimeout(timeout),
		kgo.RetryTimeout(timeout),
		kgo.MetadataMinAge(10*time.Millisecond),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(timeout.Milliseconds()))
	d := driver{admin, timeout}
	lines.Serve("franz-go", lines.ModuleVersion("github.com/twmb/franz-go"), map[string]lines.Operation{
		"describe_cluster": d.describeCluster,
		"alter":            d.alter,
		"list":             d.list,
		"elect":            d.elect,
	})
}

func (d driver) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d.timeout)
}

func (d driver) describeCluster(lines.Call) (any, error) {
	ctx, cancel := d.context()
	defer cancel()
	metadata, err := d.admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, failure(err, "")
	}
	ids := metadata.Brokers.NodeIDs()
	slices.Sort(ids)
	return lines.Cluster{Brokers: ids, Controller: metadata.Controller}, nil
}

func (d driver) alter(call lines.Call) (any, error) {
	ctx, cancel := d.context()
	defer cancel()
	if call.Guarded() {
		ctx = kadm.ForbidAlterRf(ctx)
	}
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign(call.Topic, call.Partition, call.Replicas)
	responses, err := d.admin.AlterPartitionAssignments(ctx, request)
	if err != nil {
		return nil, failure(err, "")
	}
	response := responses[call.Topic][call.Partition]
	return nil, failure(response.Err, response.ErrMessage)
}

func (d driver) list(call lines.Call) (any, error) {
	ctx, cancel := d.context()
	defer cancel()
	var set kadm.TopicsSet
	for _, partition := range call.Partitions {
		set.Add(partition.Topic, partition.Index)
	}
	responses, err := d.admin.ListPartitionReassignments(ctx, set)
	if err != nil {
		return nil, failure(err, "")
	}
	ongoing := map[string]lines.Reassignment{}
	for _, r := range responses.Sorted() {
		key := lines.Partition{Topic: r.Topic, Index: r.Partition}.String()
		ongoing[key] = lines.Reassignment{
			Replicas: r.Replicas, Adding: r.AddingReplicas, Removing: r.RemovingReplicas,
		}
	}
	return ongoing, nil
}

func (d driver) elect(call lines.Call) (any, error) {
	ctx, cancel := d.context()
	defer cancel()
	var set kadm.TopicsSet
	set.Add(call.Topic, call.Partition)
	results, err := d.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, set)
	if err != nil {
		return nil, failure(err, "")
	}
	result := results[call.Topic][call.Partition]
	return nil, failure(result.Err, result.ErrMessage)
}

// failure turns a franz-go error into ours; message is the broker's own, where it sent one.
func failure(err error, message string) error {
	var kafka *kerr.Error
	if !errors.As(err, &kafka) {
		return err
	}
	if message == "" {
		message = kafka.Description
	}
	return lines.Fail(kafka.Message, kafka.Code, message)
}
