// Drives segmentio's kafka-go by the protocol of docs/reference/adapters.md.
package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"kspec-adapters/lines"
)

// options differ from the defaults; connect sets them.
var options = map[string]string{
	"Transport.DialTimeout": "timeout_ms",
	"Transport.MetadataTTL": "timeout_ms: also the time-out of its own Metadata requests",
	"Client.Timeout":        "timeout_ms",
}

type adapter struct {
	server    lines.Server
	transport *kafka.Transport
	client    *kafka.Client
	timeout   time.Duration
	data      *data
}

func main() {
	a := &adapter{server: lines.Server{
		Client:  "kafka-go",
		Version: lines.ModuleVersion("github.com/segmentio/kafka-go"),
		Records: []string{"headers"},
		Options: options,
		Code:    code,
	}}
	a.server.Operations = map[string]lines.Operation{
		"connect":             a.connect,
		"close":               a.close,
		"describe_cluster":    a.describeCluster,
		"describe_topics":     a.describeTopics,
		"list_topics":         a.listTopics,
		"create_topics":       a.createTopics,
		"alter_reassignments": a.alterReassignments,
		"list_reassignments":  a.listReassignments,
		"elect_leaders":       a.electLeaders,
	}
	maps.Copy(a.server.Operations, a.administration())
	lines.Add(a.server, (*data).operations, func() *data { return a.data })
	maps.Copy(a.server.Options, dataOptions)
	a.server.Serve()
}

func (a *adapter) connect(call lines.Call) (lines.Returned, error) {
	a.timeout = call.Timeout()
	a.transport = &kafka.Transport{
		ClientID: call.ClientID, DialTimeout: a.timeout, MetadataTTL: a.timeout,
	}
	dialer := &kafka.Dialer{ClientID: call.ClientID, Timeout: a.timeout, DualStack: true}
	if call.SASL != nil {
		mechanism, err := lines.Ask(func() (sasl.Mechanism, error) { return mechanism(call.SASL) })
		if err != nil {
			return lines.Returned{}, err
		}
		a.transport.SASL, dialer.SASLMechanism = mechanism, mechanism
	}
	a.client = &kafka.Client{
		Addr: kafka.TCP(call.Servers()...), Timeout: a.timeout, Transport: a.transport,
	}
	a.data = &data{
		client: a.client, transport: a.transport, dialer: dialer, connect: call,
		describe: func(err error) any { return a.server.Describe(err, "") },
	}
	return lines.Returned{}, nil
}

func mechanism(wanted *lines.SASL) (sasl.Mechanism, error) {
	switch wanted.Mechanism {
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, wanted.Username, wanted.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, wanted.Username, wanted.Password)
	default:
		return plain.Mechanism{Username: wanted.Username, Password: wanted.Password}, nil
	}
}

func (a *adapter) close(lines.Call) (lines.Returned, error) {
	if a.data != nil {
		a.data.close()
		a.data = nil
	}
	if a.transport != nil {
		a.transport.CloseIdleConnections()
		a.transport = nil
	}
	return lines.Returned{}, nil
}

// id returns a broker's id. The empty Broker is the client's word for none, or for one it does not know.
func id(broker kafka.Broker) int32 {
	if broker == (kafka.Broker{}) {
		return -1
	}
	return int32(broker.ID)
}

func ids(brokers []kafka.Broker) []int32 {
	found := []int32{}
	for _, each := range brokers {
		found = append(found, id(each))
	}
	return found
}

func (a *adapter) metadata(topics []string) (*kafka.MetadataResponse, error) {
	return lines.Ask(func() (*kafka.MetadataResponse, error) {
		return a.client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: topics})
	})
}

func (a *adapter) describeCluster(lines.Call) (lines.Returned, error) {
	metadata, err := a.metadata(nil)
	if err != nil {
		return lines.Returned{}, err
	}
	brokers := ids(metadata.Brokers)
	slices.Sort(brokers)
	result := lines.Cluster{Brokers: brokers, Controller: id(metadata.Controller)}
	return lines.Returned{Raw: *metadata, Result: result}, nil
}

func (a *adapter) describeTopics(call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	metadata, err := a.metadata(names)
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, topic := range metadata.Topics {
		if topic.Error != nil {
			found[topic.Name] = a.server.Describe(topic.Error, "")
			continue
		}
		partitions := map[string]lines.PartitionState{}
		for _, partition := range topic.Partitions {
			partitions[strconv.Itoa(partition.ID)] = lines.PartitionState{
				Leader: id(partition.Leader), Replicas: ids(partition.Replicas), ISR: ids(partition.Isr),
			}
		}
		found[topic.Name] = partitions
	}
	return lines.Returned{Raw: *metadata, Result: found}, nil
}

func (a *adapter) listTopics(lines.Call) (lines.Returned, error) {
	metadata, err := a.metadata(nil)
	if err != nil {
		return lines.Returned{}, err
	}
	names := []string{}
	for _, topic := range metadata.Topics {
		names = append(names, topic.Name)
	}
	slices.Sort(names)
	return lines.Returned{Raw: *metadata, Result: names}, nil
}

func (a *adapter) createTopics(call lines.Call) (lines.Returned, error) {
	topics, err := call.NewTopics()
	if err != nil {
		return lines.Returned{}, err
	}
	request := &kafka.CreateTopicsRequest{ValidateOnly: call.ValidateOnly}
	for name, wanted := range topics {
		request.Topics = append(request.Topics, kafka.TopicConfig{
			Topic: name, NumPartitions: int(wanted.Partitions),
			ReplicationFactor: int(wanted.ReplicationFactor),
		})
	}
	answer, err := lines.Ask(func() (*kafka.CreateTopicsResponse, error) {
		return a.client.CreateTopics(context.Background(), request)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for name, err := range answer.Errors {
		found[name] = a.server.Describe(err, "")
	}
	return lines.Returned{Raw: *answer, Result: found}, nil
}

func (a *adapter) alterReassignments(call lines.Call) (lines.Returned, error) {
	if call.AllowReplicationFactorChange != nil {
		return lines.Returned{}, lines.Unsupported("AlterPartitionReassignments has no such option")
	}
	request := &kafka.AlterPartitionReassignmentsRequest{Timeout: a.timeout}
	for partition, replicas := range call.Assignments {
		var brokers []int // nil cancels, by its documentation
		for _, each := range replicas {
			brokers = append(brokers, int(each))
		}
		request.Assignments = append(request.Assignments,
			kafka.AlterPartitionReassignmentsRequestAssignment{
				Topic: partition.Topic, PartitionID: int(partition.Index), BrokerIDs: brokers,
			})
	}
	answer, err := ask(func() (*kafka.AlterPartitionReassignmentsResponse, error) {
		return a.client.AlterPartitionReassignments(context.Background(), request)
	}, func(answer *kafka.AlterPartitionReassignmentsResponse) error { return answer.Error })
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, r := range answer.PartitionResults {
		key := lines.Partition{Topic: r.Topic, Index: int32(r.PartitionID)}.String()
		found[key] = a.server.Describe(r.Error, "")
	}
	return lines.Returned{Raw: *answer, Result: found}, nil
}

func (a *adapter) listReassignments(call lines.Call) (lines.Returned, error) {
	request := &kafka.ListPartitionReassignmentsRequest{Timeout: a.timeout}
	if call.Partitions != nil {
		request.Topics = map[string]kafka.ListPartitionReassignmentsRequestTopic{}
	}
	for _, partition := range call.Partitions {
		topic := request.Topics[partition.Topic]
		topic.PartitionIndexes = append(topic.PartitionIndexes, int(partition.Index))
		request.Topics[partition.Topic] = topic
	}
	answer, err := ask(func() (*kafka.ListPartitionReassignmentsResponse, error) {
		return a.client.ListPartitionReassignments(context.Background(), request)
	}, func(answer *kafka.ListPartitionReassignmentsResponse) error { return answer.Error })
	if err != nil {
		return lines.Returned{}, err
	}
	ongoing := map[string]lines.Reassignment{}
	for topic, each := range answer.Topics {
		for _, r := range each.Partitions {
			key := lines.Partition{Topic: topic, Index: int32(r.PartitionIndex)}.String()
			ongoing[key] = lines.NewReassignment(
				numbers(r.Replicas), numbers(r.AddingReplicas), numbers(r.RemovingReplicas))
		}
	}
	return lines.Returned{Raw: *answer, Result: ongoing}, nil
}

// ask calls the client. The error that an answer has as a whole is that of the call.
func ask[T any](work func() (*T, error), failure func(*T) error) (*T, error) {
	return lines.Ask(func() (*T, error) {
		answer, err := work()
		if err != nil {
			return nil, err
		}
		if err := failure(answer); err != nil {
			return nil, err
		}
		return answer, nil
	})
}

func numbers(given []int) []int32 {
	found := []int32{}
	for _, each := range given {
		found = append(found, int32(each))
	}
	return found
}

func (a *adapter) electLeaders(call lines.Call) (lines.Returned, error) {
	if call.Type == "unclean" {
		return lines.Returned{}, lines.Unsupported("ElectLeaders has no type of election")
	}
	request := &kafka.ElectLeadersRequest{Timeout: a.timeout}
	for _, partition := range call.Partitions {
		if request.Topic != "" && request.Topic != partition.Topic {
			return lines.Returned{}, lines.Unsupported("ElectLeaders takes one topic")
		}
		request.Topic = partition.Topic
		request.Partitions = append(request.Partitions, int(partition.Index))
	}
	if request.Topic == "" {
		return lines.Returned{}, lines.Unsupported("ElectLeaders takes partitions of a topic")
	}
	answer, err := ask(func() (*kafka.ElectLeadersResponse, error) {
		return a.client.ElectLeaders(context.Background(), request)
	}, func(answer *kafka.ElectLeadersResponse) error { return answer.Error })
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, r := range answer.PartitionResults {
		key := lines.Partition{Topic: request.Topic, Index: int32(r.Partition)}.String()
		found[key] = a.server.Describe(r.Error, "")
	}
	return lines.Returned{Raw: *answer, Result: found}, nil
}

func code(err error) (int16, bool) {
	number, is := err.(kafka.Error)
	return int16(number), is
}
