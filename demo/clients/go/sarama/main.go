// Drives sarama's ClusterAdmin for the demo: BOOTSTRAP TIMEOUT_MS on the command line.
package main

import (
	"errors"
	"io"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"kproto-demo-clients/lines"
)

type driver struct {
	bootstrap []string
	timeout   time.Duration
	admin     sarama.ClusterAdmin // made at the first call, so that its first error is an answer
}

func main() {
	sarama.Logger = log.New(io.Discard, "", 0)
	bootstrap, timeout := lines.Arguments()
	d := &driver{bootstrap: strings.Split(bootstrap, ","), timeout: timeout}
	lines.Serve("sarama", lines.ModuleVersion("github.com/IBM/sarama"), map[string]lines.Operation{
		"describe_cluster": d.describeCluster,
		"alter":            d.alter,
		"list":             d.list,
		"elect":            d.elect,
	})
	if d.admin != nil {
		_ = d.admin.Close()
	}
}

func (d *driver) connect() error {
	if d.admin != nil {
		return nil
	}
	config := sarama.NewConfig()
	config.ClientID = "demo-sarama"
	config.Version = sarama.MaxVersion
	config.Net.DialTimeout = d.timeout
	config.Net.ReadTimeout = d.timeout
	config.Net.WriteTimeout = d.timeout
	config.Admin.Timeout = d.timeout
	config.Admin.Retry.Max = 1
	config.Metadata.Retry.Max = 1
	admin, err := sarama.NewClusterAdmin(d.bootstrap, config)
	d.admin = admin
	return err
}

func (d *driver) describeCluster(lines.Call) (any, error) {
	if err := d.connect(); err != nil {
		return nil, failure(err)
	}
	brokers, controller, err := d.admin.DescribeCluster()
	if err != nil {
		return nil, failure(err)
	}
	var ids []int32
	for _, broker := range brokers {
		ids = append(ids, broker.ID())
	}
	slices.Sort(ids)
	return lines.Cluster{Brokers: ids, Controller: controller}, nil
}

func (d *driver) alter(call lines.Call) (any, error) {
	if call.AllowReplicationFactorChange != nil {
		return nil, lines.Unsupported("AlterPartitionReassignments has no such option")
	}
	if call.Partition != 0 {
		// It takes a list of assignments and numbers them from partition 0.
		return nil, lines.Unsupported("AlterPartitionReassignments cannot leave out partition 0")
	}
	if err := d.connect(); err != nil {
		return nil, failure(err)
	}
	return nil, failure(d.admin.AlterPartitionReassignments(call.Topic, [][]int32{call.Replicas}))
}

func (d *driver) list(call lines.Call) (any, error) {
	if err := d.connect(); err != nil {
		return nil, failure(err)
	}
	ongoing := map[string]lines.Reassignment{}
	for _, asked := range call.Partitions {
		topics, err := d.admin.ListPartitionReassignments(asked.Topic, []int32{asked.Index})
		if err != nil {
			return nil, failure(err)
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

func (d *driver) elect(call lines.Call) (any, error) {
	if err := d.connect(); err != nil {
		return nil, failure(err)
	}
	results, err := d.admin.ElectLeaders(
		sarama.PreferredElection, map[string][]int32{call.Topic: {call.Partition}},
	)
	if err != nil {
		return nil, failure(err)
	}
	result, found := results[call.Topic][call.Partition]
	if !found || result.ErrorCode == sarama.ErrNoError {
		return nil, nil
	}
	message := result.ErrorCode.Error()
	if result.ErrorMessage != nil {
		message = *result.ErrorMessage
	}
	return nil, lines.Fail("KError", int16(result.ErrorCode), message)
}

// failure turns a sarama error into ours: KError is the protocol's code.
func failure(err error) error {
	var kafka sarama.KError
	if !errors.As(err, &kafka) {
		return err
	}
	return lines.Fail("KError", int16(kafka), kafka.Error())
}
