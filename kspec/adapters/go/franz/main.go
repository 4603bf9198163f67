// Drives franz-go's kadm by the lines of docs/adapters.md.
package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kspec-adapters/lines"
)

type adapter struct {
	client  *kgo.Client
	admin   *kadm.Client
	timeout time.Duration
}

func main() {
	a := &adapter{}
	lines.Serve("franz-go", lines.ModuleVersion("github.com/twmb/franz-go"), map[string]lines.Operation{
		"connect":             a.connect,
		"close":               a.close,
		"describe_cluster":    a.describeCluster,
		"describe_topics":     a.describeTopics,
		"list_topics":         a.listTopics,
		"create_topics":       a.createTopics,
		"alter_reassignments": a.alterReassignments,
		"list_reassignments":  a.listReassignments,
		"elect_leaders":       a.electLeaders,
	})
}

func (a *adapter) connect(call lines.Call) (any, error) {
	a.timeout = call.Timeout()
	options := []kgo.Opt{
		kgo.SeedBrokers(call.Servers()...),
		kgo.ClientID(call.ClientID),
		kgo.DialTimeout(a.timeout),
		kgo.RequestTimeoutOverhead(a.timeout),
		kgo.RetryTimeout(a.timeout),
		kgo.RequestTimeoutOverhead(a.timeout),
		kgo.MetadataMinAge(10 * time.Millisecond),
	}
	if call.SASL != nil {
		options = append(options, kgo.SASL(mechanism(*call.SASL)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	a.client = client
	a.admin = kadm.NewClient(client)
	a.admin.SetTimeoutMillis(int32(a.timeout.Milliseconds()))
	return nil, nil
}

func mechanism(wanted lines.SASL) sasl.Mechanism {
	switch wanted.Mechanism {
	case "SCRAM-SHA-256":
		return scram.Auth{User: wanted.Username, Pass: wanted.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: wanted.Username, Pass: wanted.Password}.AsSha512Mechanism()
	default:
		return plain.Auth{User: wanted.Username, Pass: wanted.Password}.AsMechanism()
	}
}

func (a *adapter) close(lines.Call) (any, error) {
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
	return nil, nil
}

func (a *adapter) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), a.timeout)
}

func (a *adapter) describeCluster(lines.Call) (any, error) {
	ctx, cancel := a.context()
	defer cancel()
	metadata, err := a.admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, failure(err, "")
	}
	ids := metadata.Brokers.NodeIDs()
	slices.Sort(ids)
	return lines.Cluster{Brokers: ids, Controller: metadata.Controller}, nil
}

func (a *adapter) describeTopics(call lines.Call) (any, error) {
	names, err := call.Names()
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.context()
	defer cancel()
	metadata, err := a.admin.Metadata(ctx, names...)
	if err != nil {
		return nil, failure(err, "")
	}
	found := map[string]any{}
	for name, topic := range metadata.Topics {
		if topic.Err != nil {
			found[name] = lines.Outcome(failure(topic.Err, ""))
			continue
		}
		partitions := map[string]lines.PartitionState{}
		for index, partition := range topic.Partitions {
			partitions[strconv.Itoa(int(index))] = lines.PartitionState{
				Leader: partition.Leader, Replicas: partition.Replicas, ISR: partition.ISR,
			}
		}
		found[name] = partitions
	}
	return found, nil
}

func (a *adapter) listTopics(lines.Call) (any, error) {
	ctx, cancel := a.context()
	defer cancel()
	topics, err := a.admin.ListTopics(ctx)
	if err != nil {
		return nil, failure(err, "")
	}
	names := topics.Names()
	slices.Sort(names)
	return names, nil
}

func (a *adapter) createTopics(call lines.Call) (any, error) {
	topics, err := call.NewTopics()
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.context()
	defer cancel()
	found := map[string]any{}
	// kadm takes numbers for all topics at once, so each has a call of its own.
	for name, wanted := range topics {
		responses, err := a.admin.CreateTopics(ctx, wanted.Partitions, wanted.ReplicationFactor, nil, name)
		if err != nil {
			return nil, failure(err, "")
		}
		// What the answer names, be it another topic, or none.
		for answered, response := range responses {
			found[answered] = lines.Outcome(failure(response.Err, response.ErrMessage))
		}
	}
	return found, nil
}

func (a *adapter) alterReassignments(call lines.Call) (any, error) {
	ctx, cancel := a.context()
	defer cancel()
	if call.Guarded() {
		ctx = kadm.ForbidAlterRf(ctx)
	}
	var request kadm.AlterPartitionAssignmentsReq
	for partition, replicas := range call.Assignments {
		request.Assign(partition.Topic, partition.Index, replicas)
	}
	responses, err := a.admin.AlterPartitionAssignments(ctx, request)
	if err != nil {
		return nil, failure(err, "")
	}
	found := map[string]any{}
	for _, r := range responses.Sorted() {
		key := lines.Partition{Topic: r.Topic, Index: r.Partition}.String()
		found[key] = lines.Outcome(failure(r.Err, r.ErrMessage))
	}
	return found, nil
}

func (a *adapter) listReassignments(call lines.Call) (any, error) {
	if call.Partitions == nil {
		return nil, lines.Unsupported("ListPartitionReassignments has no word for all partitions")
	}
	ctx, cancel := a.context()
	defer cancel()
	set := kadm.TopicsSet{}
	for _, partition := range call.Partitions {
		set.Add(partition.Topic, partition.Index)
	}
	responses, err := a.admin.ListPartitionReassignments(ctx, set)
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

func (a *adapter) electLeaders(call lines.Call) (any, error) {
	ctx, cancel := a.context()
	defer cancel()
	how := kadm.ElectPreferredReplica
	if call.Type == "unclean" {
		how = kadm.ElectLiveReplica
	}
	var set kadm.TopicsSet // nil elects everywhere
	if call.Partitions != nil {
		set = kadm.TopicsSet{}
	}
	for _, partition := range call.Partitions {
		set.Add(partition.Topic, partition.Index)
	}
	results, err := a.admin.ElectLeaders(ctx, how, set)
	if err != nil {
		return nil, failure(err, "")
	}
	found := map[string]any{}
	for topic, partitions := range results {
		for index, result := range partitions {
			key := lines.Partition{Topic: topic, Index: index}.String()
			found[key] = lines.Outcome(failure(result.Err, result.ErrMessage))
		}
	}
	return found, nil
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
