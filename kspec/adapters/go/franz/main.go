// Drives franz-go's kadm by the protocol of docs/reference/adapters.md.
package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kspec-adapters/lines"
)

// options differ from the defaults; connect and context set them.
var options = map[string]string{
	"DialTimeout":              "timeout_ms",
	"RequestTimeoutOverhead":   "timeout_ms",
	"RetryTimeout":             "timeout_ms",
	"MetadataMinAge":           "10ms",
	"kadm's SetTimeoutMillis":  "timeout_ms",
	"the context of each call": "timeout_ms",
}

type adapter struct {
	server  lines.Server
	client  *kgo.Client
	admin   *kadm.Client
	timeout time.Duration
	data    *data
}

func main() {
	a := &adapter{server: lines.Server{
		Client:  "franz-go",
		Version: lines.ModuleVersion("github.com/twmb/franz-go"),
		Connect: []string{"tls", "oauthbearer"},
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
	maps.Copy(a.server.Options, processingOptions)
	a.server.Serve()
}

func (a *adapter) connect(call lines.Call) (lines.Returned, error) {
	a.timeout = call.Timeout()
	options := []kgo.Opt{
		kgo.SeedBrokers(call.Servers()...),
		kgo.ClientID(call.ClientID),
		kgo.DialTimeout(a.timeout),
		kgo.RequestTimeoutOverhead(a.timeout),
		kgo.RetryTimeout(a.timeout),
		kgo.MetadataMinAge(10 * time.Millisecond),
	}
	if call.TLS != nil {
		config, err := call.TLS.Config()
		if err != nil {
			return lines.Returned{}, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if call.SASL != nil {
		options = append(options, kgo.SASL(mechanism(call.SASL)))
	}
	a.data = &data{
		common: options, connect: call,
		describe: func(err error) any { return a.server.Describe(err, "") },
	}
	client, err := lines.Ask(func() (*kgo.Client, error) { return kgo.NewClient(options...) })
	if err != nil {
		return lines.Returned{}, err
	}
	a.client = client
	a.admin = kadm.NewClient(client)
	a.admin.SetTimeoutMillis(int32(a.timeout.Milliseconds()))
	return lines.Returned{}, nil
}

func mechanism(wanted *lines.SASL) sasl.Mechanism {
	switch wanted.Mechanism {
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := wanted.NextToken()
			return oauth.Auth{Token: token}, err
		})
	case "SCRAM-SHA-256":
		return scram.Auth{User: wanted.Username, Pass: wanted.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: wanted.Username, Pass: wanted.Password}.AsSha512Mechanism()
	default:
		return plain.Auth{User: wanted.Username, Pass: wanted.Password}.AsMechanism()
	}
}

func (a *adapter) close(lines.Call) (lines.Returned, error) {
	if a.data != nil {
		a.data.close()
		a.data = nil
	}
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
	return lines.Returned{}, nil
}

func (a *adapter) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), a.timeout)
}

func (a *adapter) describeCluster(lines.Call) (lines.Returned, error) {
	ctx, cancel := a.context()
	defer cancel()
	metadata, err := lines.Ask(func() (kadm.Metadata, error) { return a.admin.BrokerMetadata(ctx) })
	if err != nil {
		return lines.Returned{}, err
	}
	ids := metadata.Brokers.NodeIDs()
	slices.Sort(ids)
	result := lines.Cluster{Brokers: ids, Controller: metadata.Controller}
	return lines.Returned{Raw: metadata, Result: result}, nil
}

func (a *adapter) describeTopics(call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	ctx, cancel := a.context()
	defer cancel()
	metadata, err := lines.Ask(func() (kadm.Metadata, error) { return a.admin.Metadata(ctx, names...) })
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for name, topic := range metadata.Topics {
		if topic.Err != nil {
			found[name] = a.server.Describe(topic.Err, "")
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
	return lines.Returned{Raw: metadata, Result: found}, nil
}

func (a *adapter) listTopics(lines.Call) (lines.Returned, error) {
	ctx, cancel := a.context()
	defer cancel()
	topics, err := lines.Ask(func() (kadm.TopicDetails, error) { return a.admin.ListTopics(ctx) })
	if err != nil {
		return lines.Returned{}, err
	}
	names := topics.Names()
	slices.Sort(names)
	return lines.Returned{Raw: topics, Result: names}, nil
}

func (a *adapter) createTopics(call lines.Call) (lines.Returned, error) {
	topics, err := call.NewTopics()
	if err != nil {
		return lines.Returned{}, err
	}
	ctx, cancel := a.context()
	defer cancel()
	found := map[string]any{}
	raw := []kadm.CreateTopicResponses{}
	// kadm takes one count for all topics of a call, so each topic gets its own call.
	for name, wanted := range topics {
		responses, err := lines.Ask(func() (kadm.CreateTopicResponses, error) {
			create := a.admin.CreateTopics
			if call.ValidateOnly {
				create = a.admin.ValidateCreateTopics
			}
			return create(ctx, wanted.Partitions, wanted.ReplicationFactor, nil, name)
		})
		if err != nil {
			return lines.Returned{}, err
		}
		raw = append(raw, responses)
		// The topics that the answer names, which may be others or none.
		for answered, response := range responses {
			found[answered] = a.server.Describe(response.Err, response.ErrMessage)
		}
	}
	return lines.Returned{Raw: raw, Result: found}, nil
}

func (a *adapter) alterReassignments(call lines.Call) (lines.Returned, error) {
	ctx, cancel := a.context()
	defer cancel()
	if call.Guarded() {
		ctx = kadm.ForbidAlterRf(ctx)
	}
	var request kadm.AlterPartitionAssignmentsReq
	for partition, replicas := range call.Assignments {
		request.Assign(partition.Topic, partition.Index, replicas)
	}
	responses, err := lines.Ask(func() (kadm.AlterPartitionAssignmentsResponses, error) {
		return a.admin.AlterPartitionAssignments(ctx, request)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, r := range responses.Sorted() {
		key := lines.Partition{Topic: r.Topic, Index: r.Partition}.String()
		found[key] = a.server.Describe(r.Err, r.ErrMessage)
	}
	return lines.Returned{Raw: responses, Result: found}, nil
}

func (a *adapter) listReassignments(call lines.Call) (lines.Returned, error) {
	if call.Partitions == nil {
		why := "ListPartitionReassignments has no word for all partitions"
		return lines.Returned{}, lines.Unsupported(why)
	}
	ctx, cancel := a.context()
	defer cancel()
	set := kadm.TopicsSet{}
	for _, partition := range call.Partitions {
		set.Add(partition.Topic, partition.Index)
	}
	responses, err := lines.Ask(func() (kadm.ListPartitionReassignmentsResponses, error) {
		return a.admin.ListPartitionReassignments(ctx, set)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	ongoing := map[string]lines.Reassignment{}
	for _, r := range responses.Sorted() {
		key := lines.Partition{Topic: r.Topic, Index: r.Partition}.String()
		ongoing[key] = lines.NewReassignment(r.Replicas, r.AddingReplicas, r.RemovingReplicas)
	}
	return lines.Returned{Raw: responses, Result: ongoing}, nil
}

// Elected reports that another type of election took place: How in kadm's result.
type Elected struct {
	Elected string `json:"elected"`
}

func (a *adapter) electLeaders(call lines.Call) (lines.Returned, error) {
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
	results, err := lines.Ask(func() (kadm.ElectLeadersResults, error) {
		return a.admin.ElectLeaders(ctx, how, set)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for topic, partitions := range results {
		for index, result := range partitions {
			key := lines.Partition{Topic: topic, Index: index}.String()
			found[key] = a.server.Describe(result.Err, result.ErrMessage)
			if result.Err == nil && result.How != how {
				found[key] = Elected{map[kadm.ElectLeadersHow]string{
					kadm.ElectPreferredReplica: "preferred", kadm.ElectLiveReplica: "unclean",
				}[result.How]}
			}
		}
	}
	return lines.Returned{Raw: results, Result: found}, nil
}

func code(err error) (int16, bool) {
	kafka, is := err.(*kerr.Error)
	if !is {
		return 0, false
	}
	return kafka.Code, true
}
