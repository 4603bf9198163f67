// Drives sarama's ClusterAdmin by the protocol of docs/reference/adapters.md.
package main

import (
	"fmt"
	"io"
	"log"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

// options differ from the defaults; connect sets them.
var options = map[string]string{
	"Version":            "MaxVersion",
	"Net.DialTimeout":    "timeout_ms",
	"Net.ReadTimeout":    "timeout_ms",
	"Net.WriteTimeout":   "timeout_ms",
	"Admin.Timeout":      "timeout_ms",
	"Admin.Retry.Max":    "1",
	"Metadata.Retry.Max": "1",
}

type adapter struct {
	server  lines.Server
	servers []string
	config  *sarama.Config
	data    *data
	admin   sarama.ClusterAdmin // made at the first call, so that its first error is an answer
}

func main() {
	sarama.Logger = log.New(io.Discard, "", 0)
	a := &adapter{server: lines.Server{
		Client:  "sarama",
		Version: lines.ModuleVersion("github.com/IBM/sarama"),
		Connect: []string{"oauthbearer"},
		Records: []string{"headers"},
		Options: options,
		Code:    code,
	}}
	a.server.Operations = map[string]lines.Operation{
		"connect":             a.connect,
		"close":               a.close,
		"describe_cluster":    a.ready(a.describeCluster),
		"describe_topics":     a.ready(a.describeTopics),
		"list_topics":         a.ready(a.listTopics),
		"create_topics":       a.ready(a.createTopics),
		"alter_reassignments": a.ready(a.alterReassignments),
		"list_reassignments":  a.ready(a.listReassignments),
		"elect_leaders":       a.ready(a.electLeaders),
	}
	for name, call := range a.administration() {
		a.server.Operations[name] = a.ready(call)
	}
	lines.Add(a.server, (*data).operations, func() *data { return a.data })
	maps.Copy(a.server.Options, dataOptions)
	a.server.Serve()
}

type tokens struct{ sasl *lines.SASL }

func (t tokens) Token() (*sarama.AccessToken, error) {
	token, err := t.sasl.NextToken()
	return &sarama.AccessToken{Token: token}, err
}

func (a *adapter) connect(call lines.Call) (lines.Returned, error) {
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
		if call.SASL.Mechanism == sarama.SASLTypeOAuth {
			config.Net.SASL.TokenProvider = tokens{call.SASL}
		} else if call.SASL.Mechanism != sarama.SASLTypePlaintext {
			// sarama leaves the SCRAM exchange to a package of the caller's choice.
			return lines.Returned{}, lines.Unsupported("SCRAM needs a client that sarama does not bring along")
		}
	}
	a.servers, a.config = call.Servers(), config
	a.data = &data{
		servers: a.servers, connect: call, admin: a.madeAdmin,
		config:   func() *sarama.Config { copied := *config; return &copied },
		describe: func(err error) any { return a.server.Describe(err, "") },
	}
	return lines.Returned{}, nil
}

func (a *adapter) close(lines.Call) (lines.Returned, error) {
	if a.data != nil {
		a.data.close()
		a.data = nil
	}
	if a.admin != nil {
		_ = a.admin.Close()
		a.admin = nil
	}
	return lines.Returned{}, nil
}

func (a *adapter) ready(work lines.Operation) lines.Operation {
	return func(call lines.Call) (lines.Returned, error) {
		if _, err := a.madeAdmin(); err != nil {
			return lines.Returned{}, err
		}
		return work(call)
	}
}

func (a *adapter) madeAdmin() (sarama.ClusterAdmin, error) {
	if a.admin != nil {
		return a.admin, nil
	}
	admin, err := lines.Ask(func() (sarama.ClusterAdmin, error) {
		return sarama.NewClusterAdmin(a.servers, a.config)
	})
	if err == nil {
		a.admin = admin
	}
	return admin, err
}

func (a *adapter) describeCluster(lines.Call) (lines.Returned, error) {
	var controller int32
	brokers, err := lines.Ask(func() (brokers []*sarama.Broker, err error) {
		brokers, controller, err = a.admin.DescribeCluster()
		return brokers, err
	})
	if err != nil {
		return lines.Returned{}, err
	}
	ids := []int32{}
	for _, broker := range brokers {
		ids = append(ids, broker.ID())
	}
	slices.Sort(ids)
	raw := []any{fmt.Sprintf("brokers %d", ids), controller}
	return lines.Returned{Raw: raw, Result: lines.Cluster{Brokers: ids, Controller: controller}}, nil
}

func (a *adapter) describeTopics(call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	topics, err := lines.Ask(func() ([]*sarama.TopicMetadata, error) {
		return a.admin.DescribeTopics(names)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	raw := []sarama.TopicMetadata{}
	found := map[string]any{}
	for _, topic := range topics {
		raw = append(raw, *topic)
		if topic.Err != sarama.ErrNoError {
			found[topic.Name] = a.server.Describe(topic.Err, "")
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
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) listTopics(lines.Call) (lines.Returned, error) {
	topics, err := lines.Ask(a.admin.ListTopics)
	if err != nil {
		return lines.Returned{}, err
	}
	names := []string{}
	for name := range topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return lines.Returned{Raw: topics, Result: names}, nil
}

func (a *adapter) createTopics(call lines.Call) (lines.Returned, error) {
	topics, err := call.NewTopics()
	if err != nil {
		return lines.Returned{}, err
	}
	found, raw := map[string]any{}, map[string]error{}
	for name, wanted := range topics { // it takes one topic per call
		detail := sarama.TopicDetail{
			NumPartitions: wanted.Partitions, ReplicationFactor: wanted.ReplicationFactor,
		}
		_, err := lines.Ask(func() (any, error) {
			return nil, a.admin.CreateTopic(name, &detail, call.ValidateOnly)
		})
		raw[name] = err
		found[name] = a.server.Describe(lines.Cause(err), "")
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) alterReassignments(call lines.Call) (lines.Returned, error) {
	if call.AllowReplicationFactorChange != nil {
		return lines.Returned{}, lines.Unsupported("AlterPartitionReassignments has no such option")
	}
	// It takes a topic and a list of assignments, numbered from partition 0.
	byTopic := map[string][][]int32{}
	for partition := range call.Assignments {
		byTopic[partition.Topic] = append(byTopic[partition.Topic], nil)
	}
	for partition, replicas := range call.Assignments {
		list := byTopic[partition.Topic]
		if int(partition.Index) >= len(list) {
			return lines.Returned{}, lines.Unsupported("AlterPartitionReassignments cannot leave out a partition")
		}
		list[partition.Index] = replicas
	}
	if len(byTopic) > 1 {
		return lines.Returned{}, lines.Unsupported("AlterPartitionReassignments takes one topic")
	}
	// It returns one error for all of the topic's partitions, which names those that failed.
	for topic, list := range byTopic {
		_, err := lines.Ask(func() (any, error) {
			return nil, a.admin.AlterPartitionReassignments(topic, list)
		})
		if err != nil {
			return lines.Returned{}, lines.Raised{Err: lines.Cause(err), Partitions: a.named(lines.Cause(err))}
		}
	}
	return lines.Returned{}, nil
}

var namesPartition = regexp.MustCompile(`^\[(.+-\d+)\]: `)

// named returns the partitions that an error or one it wraps names, "[foo-1]: ...".
func (a *adapter) named(err error) map[string]any {
	if name := namesPartition.FindStringSubmatch(err.Error()); name != nil {
		if _, joined := err.(interface{ Unwrap() []error }); !joined {
			return map[string]any{name[1]: a.server.Describe(err, "")}
		}
	}
	var found map[string]any
	for _, inner := range unwrapped(err) {
		for key, each := range a.named(inner) {
			if found == nil {
				found = map[string]any{}
			}
			found[key] = each
		}
	}
	return found
}

func unwrapped(err error) []error {
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapping.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return wrapping.Unwrap()
	}
	return nil
}

type listing = map[string]map[int32]*sarama.PartitionReplicaReassignmentsStatus

func (a *adapter) listReassignments(call lines.Call) (lines.Returned, error) {
	if call.Partitions == nil {
		return lines.Returned{}, lines.Unsupported("ListPartitionReassignments asks for partitions of one topic")
	}
	byTopic := map[string][]int32{}
	for _, partition := range call.Partitions {
		byTopic[partition.Topic] = append(byTopic[partition.Topic], partition.Index)
	}
	ongoing := map[string]lines.Reassignment{}
	raw := map[string]sarama.PartitionReplicaReassignmentsStatus{}
	for name, indexes := range byTopic {
		topics, err := lines.Ask(func() (listing, error) {
			return a.admin.ListPartitionReassignments(name, indexes)
		})
		if err != nil {
			return lines.Returned{}, err
		}
		for topic, partitions := range topics {
			for index, status := range partitions {
				key := lines.Partition{Topic: topic, Index: index}.String()
				raw[key] = *status
				ongoing[key] = lines.NewReassignment(
					status.Replicas, status.AddingReplicas, status.RemovingReplicas)
			}
		}
	}
	return lines.Returned{Raw: raw, Result: ongoing}, nil
}

func (a *adapter) electLeaders(call lines.Call) (lines.Returned, error) {
	how := sarama.PreferredElection
	if call.Type == "unclean" {
		how = sarama.UncleanElection
	}
	if call.Partitions == nil {
		return lines.Returned{}, lines.Unsupported("ElectLeaders takes partitions, and has no word for all of them")
	}
	asked := map[string][]int32{}
	for _, partition := range call.Partitions {
		asked[partition.Topic] = append(asked[partition.Topic], partition.Index)
	}
	results, err := lines.Ask(func() (map[string]map[int32]*sarama.PartitionResult, error) {
		return a.admin.ElectLeaders(how, asked)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found, raw := map[string]any{}, map[string]string{}
	for topic, partitions := range results {
		for index, result := range partitions {
			key := lines.Partition{Topic: topic, Index: index}.String()
			message := ""
			if result.ErrorMessage != nil {
				message = *result.ErrorMessage
			}
			raw[key] = fmt.Sprintf("%d %q", int16(result.ErrorCode), message)
			found[key] = nil
			if result.ErrorCode != sarama.ErrNoError {
				found[key] = a.server.Describe(result.ErrorCode, message)
			}
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func code(err error) (int16, bool) {
	kafka, is := err.(sarama.KError)
	return int16(kafka), is
}
