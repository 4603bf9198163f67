package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"kspec-adapters/lines"
)

// dataOptions differ from the defaults.
var dataOptions = map[string]string{
	"request.timeout.ms of Producer": "timeout_ms",
	"enable.auto.commit of Consumer": "false",
	"group.id of Consumer":           "kspec, where the case has none: it is required",
}

var producerNames = map[string]string{
	"acks": "acks", "idempotence": "enable.idempotence", "compression": "compression.type",
	"linger_ms": "linger.ms", "batch_bytes": "batch.size", "max_in_flight": "max.in.flight",
	"delivery_timeout_ms": "delivery.timeout.ms", "transactional_id": "transactional.id",
	"transaction_timeout_ms": "transaction.timeout.ms",
	"metadata_age_ms":        "topic.metadata.refresh.interval.ms",
}

var consumerNames = map[string]string{
	"group": "group.id", "offset_reset": "auto.offset.reset", "isolation": "isolation.level",
	"max_wait_ms": "fetch.wait.max.ms", "partition_max_bytes": "max.partition.fetch.bytes",
	"rack": "client.rack", "protocol": "group.protocol", "instance_id": "group.instance.id",
	"session_timeout_ms": "session.timeout.ms", "heartbeat_ms": "heartbeat.interval.ms",
	"max_poll_ms": "max.poll.interval.ms", "assignors": "partition.assignment.strategy",
	"remote_assignor": "group.remote.assignor",
	"metadata_age_ms": "topic.metadata.refresh.interval.ms",
}

// data is a producer and a consumer, each made by its first call.
type data struct {
	common   kafka.ConfigMap
	connect  lines.Call
	describe func(error) any
	producer *kafka.Producer
	consumer *kafka.Consumer
	ready    bool // for transactions
}

func (d *data) operations() map[string]lines.Operation {
	return map[string]lines.Operation{
		"produce": d.produce, "send": d.send, "begin_transaction": d.beginTransaction,
		"send_offsets": d.sendOffsets, "commit_transaction": d.commitTransaction,
		"abort_transaction": d.abortTransaction, "assign": d.assign, "subscribe": d.subscribe,
		"unsubscribe": d.unsubscribe, "assignment": d.assignment, "poll": d.poll,
		"position": d.position, "commit": d.commit, "committed": d.committed,
		"close_consumer": d.closeConsumer,
	}
}

func (d *data) close() {
	producer, consumer := d.producer, d.consumer
	d.producer, d.consumer = nil, nil
	if producer != nil {
		lines.Within(time.Second, func() {
			_ = producer.Purge(kafka.PurgeQueue | kafka.PurgeInFlight | kafka.PurgeNonBlocking)
			producer.Close()
		})
	}
	if consumer != nil {
		lines.Within(time.Second, func() { _ = consumer.Close() })
	}
}

// config returns the common options, and by their names here those that the case chose.
func (d *data) config(own kafka.ConfigMap, raw json.RawMessage, names map[string]string) (*kafka.ConfigMap, error) {
	config := maps.Clone(d.common)
	maps.Copy(config, own)
	given := map[string]any{}
	err := lines.Options(raw, &given, slices.Collect(maps.Keys(names))...)
	for name, value := range given {
		switch value := value.(type) {
		case float64:
			config[names[name]] = int(value)
		case []any:
			texts := []string{}
			for _, each := range value {
				if each == "sticky" {
					return nil, lines.Unsupported("librdkafka has no assignor sticky")
				}
				texts = append(texts, each.(string))
			}
			config[names[name]] = strings.Join(texts, ",")
		default:
			config[names[name]] = value
		}
	}
	return &config, err
}

func (d *data) madeProducer() (*kafka.Producer, error) {
	if d.producer != nil {
		return d.producer, nil
	}
	own := kafka.ConfigMap{"request.timeout.ms": d.connect.TimeoutMs}
	config, err := d.config(own, d.connect.Producer, producerNames)
	if err != nil {
		return nil, err
	}
	producer, err := lines.Ask(func() (*kafka.Producer, error) {
		return kafka.NewProducer(config)
	})
	if err != nil {
		return nil, err
	}
	d.producer = producer
	go func() { // errors that are no record's
		for range producer.Events() {
		}
	}()
	return producer, nil
}

func newMessage(record lines.NewRecord) *kafka.Message {
	where := kafka.TopicPartition{Topic: &record.Topic, Partition: kafka.PartitionAny}
	if record.Partition != nil {
		where.Partition = *record.Partition
	}
	message := &kafka.Message{
		TopicPartition: where, Key: lines.Bytes(record.Key), Value: lines.Bytes(record.Value),
	}
	for _, each := range record.Headers {
		message.Headers = append(message.Headers, kafka.Header{Key: *each[0], Value: lines.Bytes(each[1])})
	}
	return message
}

func headers(message *kafka.Message) (found [][2]any) {
	for _, each := range message.Headers {
		found = append(found, [2]any{each.Key, lines.Text(each.Value)})
	}
	return found
}

func (d *data) produce(call lines.Call) (lines.Returned, error) {
	records, err := call.NewRecords()
	if err != nil {
		return lines.Returned{}, err
	}
	producer, err := d.madeProducer()
	if err != nil {
		return lines.Returned{}, err
	}
	outcomes := lines.NewOutcomes(len(records), d.connect.OutcomeTime())
	delivered := make(chan kafka.Event, len(records))
	for number, each := range records {
		message := newMessage(each)
		message.Opaque = number
		_, err := lines.Ask(func() (any, error) { return nil, producer.Produce(message, delivered) })
		var raised lines.Raised
		if errors.As(err, &raised) {
			outcomes.Set(number, d.describe(raised.Err))
		}
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case event := <-delivered:
				if message, is := event.(*kafka.Message); is {
					outcomes.Set(message.Opaque.(int), d.delivered(message.TopicPartition))
				}
			case <-done:
				return
			}
		}
	}()
	found := outcomes.Wait()
	return lines.Returned{Raw: found, Result: found}, nil
}

func (d *data) delivered(to kafka.TopicPartition) any {
	if to.Error != nil {
		return d.describe(to.Error)
	}
	return lines.Place{Topic: *to.Topic, Partition: to.Partition, Offset: int64(to.Offset)}
}

// producing makes a call of the producer that ends within the client's time-out.
func (d *data) producing(work func(context.Context, *kafka.Producer) error) (lines.Returned, error) {
	producer, err := d.madeProducer()
	if err != nil {
		return lines.Returned{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.connect.Timeout())
	defer cancel()
	_, err = lines.Ask(func() (any, error) { return nil, work(ctx, producer) })
	return lines.Returned{}, err
}

func (d *data) send(call lines.Call) (lines.Returned, error) {
	records, err := call.NewRecords()
	if err != nil {
		return lines.Returned{}, err
	}
	return d.producing(func(_ context.Context, producer *kafka.Producer) error {
		for _, each := range records {
			if err := producer.Produce(newMessage(each), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *data) beginTransaction(lines.Call) (lines.Returned, error) {
	return d.producing(func(ctx context.Context, producer *kafka.Producer) error {
		if !d.ready {
			if err := producer.InitTransactions(ctx); err != nil {
				return err
			}
			d.ready = true
		}
		return producer.BeginTransaction()
	})
}

func (d *data) sendOffsets(call lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	return d.producing(func(ctx context.Context, producer *kafka.Producer) error {
		group, err := consumer.GetConsumerGroupMetadata()
		if err != nil {
			return err
		}
		return producer.SendOffsetsToTransaction(ctx, partitions(call.Offsets), group)
	})
}

func (d *data) commitTransaction(lines.Call) (lines.Returned, error) {
	return d.producing(func(ctx context.Context, producer *kafka.Producer) error {
		return producer.CommitTransaction(ctx)
	})
}

func (d *data) abortTransaction(lines.Call) (lines.Returned, error) {
	return d.producing(func(ctx context.Context, producer *kafka.Producer) error {
		return producer.AbortTransaction(ctx)
	})
}

func (d *data) madeConsumer() (*kafka.Consumer, error) {
	if d.consumer != nil {
		return d.consumer, nil
	}
	own := kafka.ConfigMap{"group.id": "kspec", "enable.auto.commit": false}
	config, err := d.config(own, d.connect.Consumer, consumerNames)
	if err != nil {
		return nil, err
	}
	if (*config)["auto.offset.reset"] == "none" { // its other name here
		(*config)["auto.offset.reset"] = "error"
	}
	d.consumer, err = lines.Ask(func() (*kafka.Consumer, error) {
		return kafka.NewConsumer(config)
	})
	return d.consumer, err
}

// partition returns the client's form, with an offset if there is one.
func partition(each lines.Partition, offset *int64) kafka.TopicPartition {
	found := kafka.TopicPartition{
		Topic: &each.Topic, Partition: each.Index, Offset: kafka.OffsetInvalid,
	}
	if offset != nil {
		found.Offset = kafka.Offset(*offset)
	}
	return found
}

func key(each kafka.TopicPartition) string {
	return lines.Partition{Topic: *each.Topic, Index: each.Partition}.String()
}

func partitions(offsets map[lines.Partition]*int64) []kafka.TopicPartition {
	found := []kafka.TopicPartition{}
	for each, offset := range offsets {
		found = append(found, partition(each, offset))
	}
	return found
}

func (d *data) assign(call lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	_, err = lines.Ask(func() (any, error) { return nil, consumer.Assign(partitions(call.Offsets)) })
	return lines.Returned{}, err
}

func (d *data) subscribe(call lines.Call) (lines.Returned, error) {
	names := []string{call.Pattern}
	if call.Pattern == "" {
		var err error
		if names, err = call.Names(); err != nil {
			return lines.Returned{}, err
		}
	}
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	_, err = lines.Ask(func() (any, error) { return nil, consumer.SubscribeTopics(names, nil) })
	return lines.Returned{}, err
}

func (d *data) unsubscribe(lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	_, err = lines.Ask(func() (any, error) { return nil, consumer.Unsubscribe() })
	return lines.Returned{}, err
}

func (d *data) assignment(lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	found, err := lines.Ask(consumer.Assignment)
	if err != nil {
		return lines.Returned{}, err
	}
	partitions := []lines.Partition{}
	for _, each := range found {
		partitions = append(partitions, lines.Partition{Topic: *each.Topic, Index: each.Partition})
	}
	return lines.Returned{Raw: found, Result: lines.Keys(partitions)}, nil
}

func (d *data) closeConsumer(lines.Call) (lines.Returned, error) {
	consumer := d.consumer
	if consumer == nil {
		return lines.Returned{}, nil
	}
	d.consumer = nil
	_, err := lines.Ask(func() (any, error) { return nil, consumer.Close() })
	return lines.Returned{}, err
}

// poll ends at an error of a record or at a fatal one. Other errors are informational, as the client's
// documentation says: the consumer goes on. Apart from those of librdkafka itself, such as of connections, they
// are the call's if the records did not come.
func (d *data) poll(call lines.Call) (lines.Returned, error) {
	count, err := call.Count()
	if err != nil {
		return lines.Returned{}, err
	}
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	ends := time.Now().Add(lines.Milliseconds(call.Ms))
	found := []lines.Record{}
	var last error
	for len(found) < count && time.Now().Before(ends) {
		left := max(int(time.Until(ends).Milliseconds()), 1)
		event, _ := lines.Ask(func() (kafka.Event, error) { return consumer.Poll(left), nil })
		switch event := event.(type) {
		case *kafka.Message:
			if failed := event.TopicPartition.Error; failed != nil {
				return lines.Returned{}, lines.Raised{Err: failed, Records: found}
			}
			found = append(found, lines.Record{
				Topic: *event.TopicPartition.Topic, Partition: event.TopicPartition.Partition,
				Offset: int64(event.TopicPartition.Offset), Timestamp: lines.Millis(event.Timestamp),
				Key: lines.Text(event.Key), Value: lines.Text(event.Value), Headers: headers(event),
			})
		case kafka.Error:
			if event.IsFatal() {
				return lines.Returned{}, lines.Raised{Err: event, Records: found}
			}
			if event.Code() > -1 || event.Code() == kafka.ErrAutoOffsetReset {
				last = event
			}
		}
	}
	if last != nil && len(found) < count {
		return lines.Returned{}, lines.Raised{Err: last, Records: found}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}

func wantedPartitions(call lines.Call) []kafka.TopicPartition {
	found := []kafka.TopicPartition{}
	for _, each := range call.Partitions {
		found = append(found, partition(each, nil))
	}
	return found
}

// offsets returns what the client gives, negative if there is none.
func offsets(given []kafka.TopicPartition) lines.Returned {
	found := map[string]int64{}
	for _, each := range given {
		found[key(each)] = int64(each.Offset)
	}
	return lines.Returned{Raw: given, Result: found}
}

func (d *data) position(call lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	found, err := lines.Ask(func() ([]kafka.TopicPartition, error) {
		return consumer.Position(wantedPartitions(call))
	})
	if err != nil {
		return lines.Returned{}, err
	}
	return offsets(found), nil
}

func (d *data) commit(call lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	found, err := lines.Ask(func() ([]kafka.TopicPartition, error) {
		if call.Offsets == nil {
			return consumer.Commit()
		}
		return consumer.CommitOffsets(partitions(call.Offsets))
	})
	if err != nil {
		return lines.Returned{}, err
	}
	return outcomes(found, d.describe), nil
}

func (d *data) committed(call lines.Call) (lines.Returned, error) {
	consumer, err := d.madeConsumer()
	if err != nil {
		return lines.Returned{}, err
	}
	found, err := lines.Ask(func() ([]kafka.TopicPartition, error) {
		return consumer.Committed(wantedPartitions(call), d.connect.TimeoutMs)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	return offsets(found), nil
}
