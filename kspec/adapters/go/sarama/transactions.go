package main

import (
	"encoding/json"

	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

// transactional changes a configuration for a transactional id, with what sarama requires for it.
func transactional(config *sarama.Config, given lines.ProducerOptions) {
	if given.TransactionalID == "" {
		return
	}
	config.Producer.Transaction.ID = given.TransactionalID
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	if given.TransactionTimeoutMs != nil {
		config.Producer.Transaction.Timeout = lines.Milliseconds(*given.TransactionTimeoutMs)
	}
}

// send hands records over. What becomes of each comes later, on the producer's channels.
func (d *data) send(call lines.Call) (lines.Returned, error) {
	_, err := d.handOver(call)
	return lines.Returned{}, err
}

func (d *data) beginTransaction(lines.Call) (lines.Returned, error) {
	return d.transaction(sarama.AsyncProducer.BeginTxn)
}

// commitTransaction writes what was handed over, as CommitTxn does by itself.
func (d *data) commitTransaction(lines.Call) (lines.Returned, error) {
	return d.transaction(sarama.AsyncProducer.CommitTxn)
}

func (d *data) abortTransaction(lines.Call) (lines.Returned, error) {
	return d.transaction(sarama.AsyncProducer.AbortTxn)
}

func (d *data) transaction(work func(sarama.AsyncProducer) error) (lines.Returned, error) {
	producer, err := d.madeProducer(true)
	if err != nil {
		return lines.Returned{}, err
	}
	_, err = lines.Ask(func() (any, error) { return nil, work(producer) })
	return lines.Returned{}, err
}

func (d *data) sendOffsets(call lines.Call) (lines.Returned, error) {
	var given lines.ConsumerOptions
	if err := json.Unmarshal(d.connect.Consumer, &given); err != nil {
		return lines.Returned{}, err
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{}
	for each, offset := range call.Offsets {
		offsets[each.Topic] = append(offsets[each.Topic], &sarama.PartitionOffsetMetadata{
			Partition: each.Index, Offset: *offset, LeaderEpoch: -1,
		})
	}
	metadata := sarama.NewConsumerGroupMetadata(given.Group)
	if session := d.session(); session != nil {
		var instance *string
		if given.InstanceID != "" {
			instance = &given.InstanceID
		}
		metadata = sarama.NewConsumerGroupMetadataFromSession(session, given.Group, instance)
	}
	return d.transaction(func(producer sarama.AsyncProducer) error {
		return producer.AddOffsetsToTxnWithGroupMetadata(offsets, metadata)
	})
}

// session returns that of the member, or nil.
func (d *data) session() sarama.ConsumerGroupSession {
	if d.member == nil {
		return nil
	}
	d.member.mutex.Lock()
	defer d.member.mutex.Unlock()
	return d.member.session
}
