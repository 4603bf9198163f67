// Drives sarama's ClusterAdmin by the lines of docs/adapters.md.
package main

import (
	"errors"
	"io"
	"log"
	"slices"
	"strconv"

	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

type adapter struct {
	servers []string
	config  *sarama.Config
	admin   sarama.ClusterAdmin // made at the first call, so that its first error is an answer
}

func main() {
	sarama.Logger = log.New(io.Discard, "", 0)
	a := &adapter{}
	lines.Serve("sarama", lines.ModuleVersion("github.com/IBM/sarama"), map[string]lines.Operation{
		"connect":             a.connect,
		"close":               a.close,
		"describe_cluster":    a.ready(a.describeCluster),
		"describe_topics":     a.ready(a.describeTopics),
		"list_topics":         a.ready(a.listTopics),
		"create_topics":       a.ready(a.createTopics),
		"alter_reassignments": a.ready(a.alterReassignments),
		"list_reassignments":  a.ready(a.listReassignments),
		"elect_leaders":       a.ready(a.electLeaders),
	})
}

func (a *adapter) connect(call lines.Call) (any, error) {
	timeout := call.Timeout()
	config := sarama.NewConfig()
	config.ClientID = call.ClientID
	config.Version = sarama.MaxVersion
	config.Net.DialTimeout = timeout
	config.Net.ReadTimeout = timeout
	config.Net.WriteTimeout = timeout
	config.Admin.Timeout = timeout
	config.Admin.Retry.Max = 1
	config.Metadata.Retry.Max = 1
	if call.SASL != nil {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(call.SASL.Mechanism)
		config.Net.SASL.User = call.SASL.Username
		config.Net.SASL.Password = call.SASL.Password
		if call.SASL.Mechanism != sarama.SASLTypePlaintext {
			// sarama leaves SCRAM itself to a package of the caller's choice.
			return nil, lines.Unsupported("SCRAM needs a client that sarama does not bring along")
		}
	}
	a.servers, a.config = call.Servers(), config
	return nil, nil
}

func (a *adapter) close(lines.Call) (any, error) {
	if a.admin != nil {
		_ = a.admin.Close()
		a.admin = nil
	}
	return nil, nil
}

func (a *adapter) ready(work lines.Operation) lines.Operation {
	return func(call lines.Call) (any, error) {
		if a.admin == nil {
			admin, err := sarama.NewClusterAdmin(a.servers, a.config)
			if err != nil {
				return nil, failure(err)
			}
			a.admin = admin
		}
		result, err := work(call)
		if err != nil {
			return nil, failure(err)
		}
		return result, nil
	}
}

func (a *adapter) describeCluster(lines.Call) (any, error) {
	brokers, controller, err := a.admin.DescribeCluster()
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, broker := range brokers {
		ids = append(ids, broker.ID())
	}
	slices.Sort(ids)
	return lines.Cluster{Brokers: ids, Controller: controller}, nil
}

func (a *adapter) describeTopics(call lines.Call) (any, error) {
	names, err := call.Names()
	if err != nil {
		return nil, err
	}
	topics, err := a.admin.DescribeTopics(names)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, topic := range topics {
		if topic.Err != sarama.ErrNoError {
			found[topic.Name] = lines.Outcome(failure(topic.Err))
			continue
		}
		partitions := map[string]lines.PartitionState{}
		for _, partition := range topic.Partitions {
			partitions[strconv.Itoa(int(partition.ID))] = lines.PartitionState{
				Leader: partition.Leader, Replicas: partition.Replicas, ISR: partition.Isr,
			}
		}
		found[topic.Name] = partitions
	}
	return found, nil
}

func (a *adapter) listTopics(lines.Call) (any, error) {
	topics, err := a.admin.ListTopics()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for name := range topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (a *adapter) createTopics(call lines.Call) (any, error) {
	topics, err := call.NewTopics()
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for name, wanted := range topics { // one topic a call is all it takes
		detail := sarama.TopicDetail{
			NumPartitions: wanted.Partitions, ReplicationFactor: wanted.ReplicationFactor,
		}
		found[name] = lines.Outcome(failure(a.admin.CreateTopic(name, &detail, false)))
	}
	return found, nil
}

func (a *adapter) alterReassignments(call lines.Call) (any, error) {
	if call.AllowReplicationFactorChange != nil {
		return nil, lines.Unsupported("AlterPartitionReassignments has no such option")
	}
	// It takes a topic and a list of assignments, which it numbers from partition 0.
	byTopic := map[string][][]int32{}
	for partition := range call.Assignments {
		byTopic[partition.Topic] = append(byTopic[partition.Topic], nil)
	}
	for partition, replicas := range call.Assignments {
		list := byTopic[partition.Topic]
		if int(partition.Index) >= len(list) {
			return nil, lines.Unsupported("AlterPartitionReassignments cannot leave out a partition")
		}
		list[partition.Index] = replicas
	}
	found := map[string]any{}
	for topic, list := range byTopic {
		err := a.admin.AlterPartitionReassignments(topic, list)
		for index := range list {
			// One error for all of a topic's partitions: sarama does not say of which.
			key := lines.Partition{Topic: topic, Index: int32(index)}.String()
			found[key] = lines.Outcome(failure(err))
		}
	}
	return found, nil
}

func (a *adapter) listReassignments(call lines.Call) (any, error) {
	if call.Partitions == nil {
		return nil, lines.Unsupported("ListPartitionReassignments asks for partitions of one topic")
	}
	byTopic := map[string][]int32{}
	for _, partition := range call.Partitions {
		byTopic[partition.Topic] = append(byTopic[partition.Topic], partition.Index)
	}
	ongoing := map[string]lines.Reassignment{}
	for name, indexes := range byTopic {
		topics, err := a.admin.ListPartitionReassignments(name, indexes)
		if err != nil {
			return nil, err
		}
		for topic, partitions := range topics {
			for index, status := range partitions {
				ongoing[lines.Partition{Topic: topic, Index: index}.String()] = lines.Reassignment{
					Replicas: status.Replicas,
					Adding:   status.AddingReplicas,
					Removing: status.RemovingReplicas,
				}
			}
		}
	}
	return ongoing, nil
}

func (a *adapter) electLeaders(call lines.Call) (any, error) {
	how := sarama.PreferredElection
	if call.Type == "unclean" {
		how = sarama.UncleanElection
	}
	if call.Partitions == nil {
		return nil, lines.Unsupported("ElectLeaders takes partitions, and has no word for all of them")
	}
	asked := map[string][]int32{}
	for _, partition := range call.Partitions {
		asked[partition.Topic] = append(asked[partition.Topic], partition.Index)
	}
	results, err := a.admin.ElectLeaders(how, asked)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for topic, partitions := range results {
		for index, result := range partitions {
			found[lines.Partition{Topic: topic, Index: index}.String()] = outcome(result)
		}
	}
	return found, nil
}

func outcome(result *sarama.PartitionResult) any {
	if result.ErrorCode == sarama.ErrNoError {
		return nil
	}
	message := result.ErrorCode.Error()
	if result.ErrorMessage != nil {
		message = *result.ErrorMessage
	}
	return lines.Outcome(lines.Fail("KError", int16(result.ErrorCode), message))
}

// failure turns a sarama error into ours: KError is the protocol's code.
func failure(err error) error {
	var unsupported lines.Unsupported
	var kafka sarama.KError
	if err == nil || errors.As(err, &unsupported) || !errors.As(err, &kafka) {
		return err
	}
	return lines.Fail("KError", int16(kafka), kafka.Error())
}
