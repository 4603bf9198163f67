package main

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

// member is one of a group: it calls Consume in a loop, as the documentation says. After an error of Consume it
// waits for the next poll, since an application decides then whether to go on.
type member struct {
	group   sarama.ConsumerGroup
	reports *reports
	cancel  context.CancelFunc
	done    chan struct{}

	mutex    sync.Mutex
	session  sarama.ConsumerGroupSession
	position map[lines.Partition]int64
}

func newMember(group sarama.ConsumerGroup, topics []string, to *reports) *member {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{
		group: group, reports: to, cancel: cancel, done: make(chan struct{}),
		position: map[lines.Partition]int64{},
	}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, topics, m); err != nil && !to.fail(err) {
				return
			}
		}
	}()
	go func() {
		for err := range group.Errors() {
			to.error(err)
		}
	}()
	return m
}

func (m *member) close() error {
	m.cancel()
	<-m.done
	return m.group.Close()
}

func (d *data) assignment(lines.Call) (lines.Returned, error) {
	found := []lines.Partition{}
	if d.member != nil {
		d.member.mutex.Lock()
		defer d.member.mutex.Unlock()
		if d.member.session != nil {
			for topic, indexes := range d.member.session.Claims() {
				for _, index := range indexes {
					found = append(found, lines.Partition{Topic: topic, Index: index})
				}
			}
		}
	}
	return lines.Returned{Raw: found, Result: lines.Keys(found)}, nil
}

// Setup is called when the member has partitions.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	m.position = map[lines.Partition]int64{}
	return nil
}

// Cleanup is called when the member gives its partitions up.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim reads one partition.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, more := <-claim.Messages():
			if !more || !m.reports.record(record) {
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) polled(record *sarama.ConsumerMessage) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.position[lines.Partition{Topic: record.Topic, Index: record.Partition}] = record.Offset + 1
}

// commit marks and commits. The session's Commit returns nothing: its errors come as reports.
func (m *member) commit(given map[lines.Partition]*int64) error {
	m.mutex.Lock()
	session := m.session
	wanted := map[lines.Partition]int64{}
	for partition, offset := range m.position {
		if given == nil {
			wanted[partition] = offset
		}
	}
	m.mutex.Unlock()
	for partition, offset := range given {
		if offset != nil {
			wanted[partition] = *offset
		}
	}
	if session == nil {
		return lines.Unsupported("the member has no session")
	}
	_, err := lines.Ask(func() (any, error) {
		for partition, offset := range wanted {
			session.MarkOffset(partition.Topic, partition.Index, offset, "")
			session.ResetOffset(partition.Topic, partition.Index, offset, "")
		}
		session.Commit()
		return nil, nil
	})
	if err != nil {
		return err
	}
	return m.reported()
}

// reported returns the error that the client reports of a commit, if any.
func (m *member) reported() error {
	select {
	case err := <-m.reports.errors:
		return lines.Raised{Err: err}
	case <-time.After(reportTime):
		return nil
	}
}

// reportTime is more than an error takes from the client's offsets to the channel of its group.
const reportTime = 500 * time.Millisecond

// offsets commits without a membership.
type offsets struct {
	client  sarama.Client
	manager sarama.OffsetManager
	managed map[lines.Partition]sarama.PartitionOffsetManager
}

func (o *offsets) close() {
	for _, each := range o.managed {
		each.AsyncClose()
	}
	_ = o.manager.Close()
	_ = o.client.Close()
}

func (d *data) madeOffsets() (*offsets, error) {
	if d.offsets != nil {
		return d.offsets, nil
	}
	config, given, err := d.consumerConfig()
	if err != nil {
		return nil, err
	}
	client, err := lines.Ask(func() (sarama.Client, error) { return sarama.NewClient(d.servers, config) })
	if err != nil {
		return nil, err
	}
	manager, err := lines.Ask(func() (sarama.OffsetManager, error) {
		return sarama.NewOffsetManagerFromClient(given.Group, client)
	})
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	d.offsets = &offsets{client, manager, map[lines.Partition]sarama.PartitionOffsetManager{}}
	return d.offsets, nil
}

func (o *offsets) partition(each lines.Partition) (sarama.PartitionOffsetManager, error) {
	if found := o.managed[each]; found != nil {
		return found, nil
	}
	made, err := lines.Ask(func() (sarama.PartitionOffsetManager, error) {
		return o.manager.ManagePartition(each.Topic, each.Index)
	})
	if err == nil {
		o.managed[each] = made
	}
	return made, err
}

func (d *data) commit(call lines.Call) (lines.Returned, error) {
	if d.member != nil {
		return lines.Returned{}, d.member.commit(call.Offsets)
	}
	if call.Offsets == nil {
		return lines.Returned{}, lines.Unsupported("a consumer of partitions has no positions")
	}
	made, err := d.madeOffsets()
	if err != nil {
		return lines.Returned{}, err
	}
	for each, offset := range call.Offsets {
		managed, err := made.partition(each)
		if err != nil {
			return lines.Returned{}, err
		}
		if offset != nil {
			managed.MarkOffset(*offset, "")
			managed.ResetOffset(*offset, "")
		}
	}
	_, err = lines.Ask(func() (any, error) {
		made.manager.Commit()
		return nil, nil
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for each := range call.Offsets {
		found[each.String()] = nil
		select {
		case failed := <-made.managed[each].Errors():
			found[each.String()] = d.describe(failed)
		default:
		}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}

func (d *data) committed(call lines.Call) (lines.Returned, error) {
	admin, err := d.admin()
	if err != nil {
		return lines.Returned{}, err
	}
	_, given, err := d.consumerConfig()
	if err != nil {
		return lines.Returned{}, err
	}
	wanted := map[string][]int32{}
	for _, each := range call.Partitions {
		wanted[each.Topic] = append(wanted[each.Topic], each.Index)
	}
	answer, err := lines.Ask(func() (*sarama.OffsetFetchResponse, error) {
		return admin.ListConsumerGroupOffsets(given.Group, wanted)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	if answer.Err != sarama.ErrNoError {
		return lines.Returned{}, lines.Raised{Err: answer.Err}
	}
	found := map[string]any{}
	for topic, partitions := range answer.Blocks {
		for index, block := range partitions {
			key := lines.Partition{Topic: topic, Index: index}.String()
			found[key] = block.Offset
			if block.Err != sarama.ErrNoError {
				found[key] = d.describe(block.Err)
			}
		}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}
