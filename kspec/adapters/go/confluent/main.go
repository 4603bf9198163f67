// Drives confluent-kafka-go, which brings its own librdkafka, by the protocol of docs/reference/adapters.md.
package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"kspec-adapters/lines"
)

// options differ from the defaults; connect and context set them.
var options = map[string]string{
	"socket.timeout.ms":                  "timeout_ms",
	"socket.connection.setup.timeout.ms": "timeout_ms, at least 1000",
	"reconnect.backoff.max.ms":           "1000",
	"log_level":                          "0",
	"the context of each call":           "timeout_ms",
}

type adapter struct {
	server  lines.Server
	config  kafka.ConfigMap
	admin   *kafka.AdminClient
	timeout time.Duration
	data    *data
}

func main() {
	_, library := kafka.LibraryVersion()
	module := lines.ModuleVersion("github.com/confluentinc/confluent-kafka-go/v2")
	a := &adapter{server: lines.Server{
		Client:  "confluent-kafka-go",
		Version: module + " (librdkafka " + library + ")",
		Records: []string{"headers"},
		Options: options,
		Code:    code,
	}}
	a.server.Operations = map[string]lines.Operation{
		"connect":          a.connect,
		"close":            a.close,
		"describe_cluster": a.describeCluster,
		"describe_topics":  a.describeTopics,
		"list_topics":      a.listTopics,
		"create_topics":    a.createTopics,
		"elect_leaders":    a.electLeaders,
	}
	maps.Copy(a.server.Operations, a.administration())
	lines.Add(a.server, (*data).operations, func() *data { return a.data })
	maps.Copy(a.server.Options, dataOptions)
	a.server.Serve()
}

func (a *adapter) connect(call lines.Call) (lines.Returned, error) {
	a.timeout = call.Timeout()
	a.config = kafka.ConfigMap{
		"bootstrap.servers":                  call.Bootstrap,
		"client.id":                          call.ClientID,
		"socket.timeout.ms":                  call.TimeoutMs,
		"socket.connection.setup.timeout.ms": max(call.TimeoutMs, 1000),
		"reconnect.backoff.max.ms":           1000,
		"log_level":                          0,
	}
	if call.SASL != nil {
		a.config["security.protocol"] = "SASL_PLAINTEXT"
		a.config["sasl.mechanism"] = call.SASL.Mechanism
		a.config["sasl.username"] = call.SASL.Username
		a.config["sasl.password"] = call.SASL.Password
	}
	a.data = &data{
		common: a.config, connect: call,
		describe: func(err error) any { return a.server.Describe(err, "") },
	}
	var err error
	a.admin, err = lines.Ask(func() (*kafka.AdminClient, error) {
		return kafka.NewAdminClient(&a.config)
	})
	return lines.Returned{}, err
}

func (a *adapter) close(lines.Call) (lines.Returned, error) {
	if a.data != nil {
		a.data.close()
		a.data = nil
	}
	if admin := a.admin; admin != nil {
		a.admin = nil
		lines.Within(time.Second, admin.Close)
	}
	return lines.Returned{}, nil
}

func (a *adapter) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), a.timeout)
}

func (a *adapter) describeCluster(lines.Call) (lines.Returned, error) {
	ctx, cancel := a.context()
	defer cancel()
	cluster, err := lines.Ask(func() (kafka.DescribeClusterResult, error) {
		return a.admin.DescribeCluster(ctx)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	result := lines.Cluster{Brokers: ids(cluster.Nodes), Controller: id(cluster.Controller)}
	slices.Sort(result.Brokers)
	return lines.Returned{Raw: []any{cluster.Nodes, result.Controller}, Result: result}, nil
}

func id(node *kafka.Node) int32 {
	if node == nil {
		return -1
	}
	return int32(node.ID)
}

func ids(nodes []kafka.Node) []int32 {
	found := []int32{}
	for _, node := range nodes {
		found = append(found, int32(node.ID))
	}
	return found
}

func (a *adapter) describeTopics(call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	ctx, cancel := a.context()
	defer cancel()
	topics, err := lines.Ask(func() (kafka.DescribeTopicsResult, error) {
		return a.admin.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames(names))
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, topic := range topics.TopicDescriptions {
		if failed := a.outcome(topic.Error); failed != nil {
			found[topic.Name] = failed
			continue
		}
		partitions := map[string]lines.PartitionState{}
		for _, row := range topic.Partitions {
			partitions[strconv.Itoa(row.Partition)] = lines.PartitionState{
				Leader: id(row.Leader), Replicas: ids(row.Replicas), ISR: ids(row.Isr),
			}
		}
		found[topic.Name] = partitions
	}
	return lines.Returned{Raw: topics, Result: found}, nil
}

// outcome is nil for the client's word for success.
func (a *adapter) outcome(err kafka.Error) any {
	if err.Code() == kafka.ErrNoError {
		return nil
	}
	return a.server.Describe(err, "")
}

func (a *adapter) listTopics(lines.Call) (lines.Returned, error) {
	metadata, err := lines.Ask(func() (*kafka.Metadata, error) {
		return a.admin.GetMetadata(nil, true, int(a.timeout.Milliseconds()))
	})
	if err != nil {
		return lines.Returned{}, err
	}
	names := []string{}
	for name := range metadata.Topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return lines.Returned{Raw: *metadata, Result: names}, nil
}

func (a *adapter) createTopics(call lines.Call) (lines.Returned, error) {
	topics, err := call.NewTopics()
	if err != nil {
		return lines.Returned{}, err
	}
	wanted := []kafka.TopicSpecification{}
	for name, each := range topics {
		wanted = append(wanted, kafka.TopicSpecification{
			Topic: name, NumPartitions: int(each.Partitions),
			ReplicationFactor: int(each.ReplicationFactor),
		})
	}
	ctx, cancel := a.context()
	defer cancel()
	results, err := lines.Ask(func() ([]kafka.TopicResult, error) {
		return a.admin.CreateTopics(ctx, wanted, kafka.SetAdminValidateOnly(call.ValidateOnly))
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, each := range results {
		found[each.Topic] = a.outcome(each.Error)
	}
	return lines.Returned{Raw: results, Result: found}, nil
}

func (a *adapter) electLeaders(call lines.Call) (lines.Returned, error) {
	how := kafka.ElectionTypePreferred
	if call.Type == "unclean" {
		how = kafka.ElectionTypeUnclean
	}
	var wanted []kafka.TopicPartition // nil elects everywhere
	if call.Partitions != nil {
		wanted = wantedPartitions(call)
	}
	ctx, cancel := a.context()
	defer cancel()
	results, err := lines.Ask(func() (kafka.ElectLeadersResult, error) {
		return a.admin.ElectLeaders(ctx, kafka.NewElectLeadersRequest(how, wanted))
	})
	if err != nil {
		return lines.Returned{}, err
	}
	return outcomes(results.TopicPartitions, func(err error) any {
		if known, is := err.(kafka.Error); is {
			return a.outcome(known)
		}
		return a.server.Describe(err, "")
	}), nil
}

// outcomes returns null or an error for each partition.
func outcomes(partitions []kafka.TopicPartition, described func(error) any) lines.Returned {
	found := map[string]any{}
	for _, each := range partitions {
		found[key(each)] = nil
		if each.Error != nil {
			found[key(each)] = described(each.Error)
		}
	}
	return lines.Returned{Raw: partitions, Result: found}
}

// code returns Kafka's code. Negative ones are librdkafka's own, except -1.
func code(err error) (int16, bool) {
	known, is := err.(kafka.Error)
	if !is || known.Code() < -1 {
		return 0, false
	}
	return int16(known.Code()), true
}
