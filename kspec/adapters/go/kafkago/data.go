package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"kspec-adapters/lines"
)

// dataOptions differ from the defaults.
var dataOptions = map[string]string{
	"Writer.ReadTimeout":      "timeout_ms",
	"Writer.WriteTimeout":     "timeout_ms",
	"Writer.Balancer":         "the partition of the record, where it has one",
	"Dialer.Timeout":          "timeout_ms",
	"Reader.JoinGroupBackoff": "100ms",
	"WriteMessages's ctx":     "delivery_timeout_ms",
}

// joinPause is how long a member waits before it joins again: a retry's pause, 5 s by default.
const joinPause = 100 * time.Millisecond

// data is a writer, and a reader for each partition or one for a group, each made by its first call.
type data struct {
	client    *kafka.Client
	transport *kafka.Transport
	dialer    *kafka.Dialer
	connect   lines.Call
	describe  func(error) any
	writer    *kafka.Writer
	readers   map[lines.Partition]*kafka.Reader
	group     *kafka.Reader
	polled    map[lines.Partition]kafka.Message // the last of each partition
}

func (d *data) operations() map[string]lines.Operation {
	return map[string]lines.Operation{
		"produce": d.produce, "assign": d.assign, "subscribe": d.subscribe, "poll": d.poll,
		"position": d.position, "commit": d.commit, "committed": d.committed,
		"close_consumer": d.closeConsumer,
	}
}

func (d *data) close() {
	writer, readers := d.writer, d.all()
	d.writer, d.readers, d.group = nil, nil, nil
	lines.Within(time.Second, func() {
		for _, reader := range readers {
			_ = reader.Close()
		}
	})
	lines.Within(time.Second, func() {
		if writer != nil {
			_ = writer.Close()
		}
	})
}

func (d *data) all() []*kafka.Reader {
	found := []*kafka.Reader{}
	for _, reader := range d.readers {
		found = append(found, reader)
	}
	if d.group != nil {
		found = append(found, d.group)
	}
	return found
}

// sent is what the writer carries beside a message.
type sent struct {
	partition *int32
	number    int
	outcomes  *lines.Outcomes
}

func (d *data) madeWriter() (*kafka.Writer, error) {
	if d.writer != nil {
		return d.writer, nil
	}
	var given lines.ProducerOptions
	err := lines.Options(d.connect.Producer, &given, "acks", "idempotence", "compression", "linger_ms",
		"batch_bytes", "delivery_timeout_ms")
	if err != nil {
		return nil, err
	}
	if given.Idempotence != nil && *given.Idempotence {
		return nil, lines.Unsupported("the Writer is not idempotent")
	}
	otherwise := &kafka.RoundRobin{} // the Writer's default
	writer := &kafka.Writer{
		Addr: kafka.TCP(d.connect.Servers()...), Transport: d.transport,
		ReadTimeout: d.connect.Timeout(), WriteTimeout: d.connect.Timeout(),
		Balancer: kafka.BalancerFunc(func(message kafka.Message, partitions ...int) int {
			if chosen := message.WriterData.(sent).partition; chosen != nil {
				return int(*chosen)
			}
			return otherwise.Balance(message, partitions...)
		}),
		Completion: d.written,
	}
	if given.Acks != nil {
		number, err := given.AcksNumber()
		if err != nil {
			return nil, err
		}
		writer.RequiredAcks = kafka.RequiredAcks(number)
	}
	if given.Compression != "" && given.Compression != "none" {
		writer.Compression = map[string]kafka.Compression{
			"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
		}[given.Compression]
	}
	if given.LingerMs != nil { // 0 would be its default
		writer.BatchTimeout = max(lines.Milliseconds(*given.LingerMs), time.Millisecond)
	}
	if given.BatchBytes != nil {
		writer.BatchBytes = int64(*given.BatchBytes)
	}
	d.writer = writer
	return writer, nil
}

// written is called for each batch, with the places of its messages.
func (d *data) written(messages []kafka.Message, err error) {
	for _, message := range messages {
		record := message.WriterData.(sent)
		if err != nil {
			record.outcomes.Set(record.number, d.describe(err))
			continue
		}
		record.outcomes.Set(record.number, lines.Place{
			Topic: message.Topic, Partition: int32(message.Partition), Offset: message.Offset,
		})
	}
}

func (d *data) produce(call lines.Call) (lines.Returned, error) {
	records, err := call.NewRecords()
	if err != nil {
		return lines.Returned{}, err
	}
	writer, err := d.madeWriter()
	if err != nil {
		return lines.Returned{}, err
	}
	outcomes := lines.NewOutcomes(len(records), d.connect.OutcomeTime())
	messages := []kafka.Message{}
	for number, each := range records {
		message := kafka.Message{
			Topic: each.Topic, Key: lines.Bytes(each.Key), Value: lines.Bytes(each.Value),
			WriterData: sent{each.Partition, number, outcomes},
		}
		for _, header := range each.Headers {
			given := kafka.Header{Key: *header[0], Value: lines.Bytes(header[1])}
			message.Headers = append(message.Headers, given)
		}
		messages = append(messages, message)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.deliveryTime())
	defer cancel()
	_, err = lines.Ask(func() (any, error) { return nil, writer.WriteMessages(ctx, messages...) })
	var each kafka.WriteErrors
	if err != nil && ctx.Err() == nil && !errors.As(errorOf(err), &each) {
		return lines.Returned{}, err // before anything was written
	}
	if err != nil && ctx.Err() != nil {
		for number := range records {
			outcomes.Set(number, d.describe(errorOf(err)))
		}
	}
	found := outcomes.Wait()
	return lines.Returned{Raw: found, Result: found}, nil
}

// deliveryTime is that of the context, by which a caller of WriteMessages limits it.
func (d *data) deliveryTime() time.Duration {
	var given lines.ProducerOptions
	_ = json.Unmarshal(d.connect.Producer, &given)
	if given.DeliveryTimeoutMs == 0 {
		return d.connect.OutcomeTime()
	}
	return lines.Milliseconds(given.DeliveryTimeoutMs)
}

// errorOf returns the client's error from the one that Ask made of it.
func errorOf(err error) error {
	var raised lines.Raised
	if errors.As(err, &raised) {
		return raised.Err
	}
	return err
}

func (d *data) readerConfig() (kafka.ReaderConfig, error) {
	var given lines.ConsumerOptions
	err := lines.Options(d.connect.Consumer, &given, "group", "offset_reset", "isolation",
		"max_wait_ms", "partition_max_bytes", "protocol", "session_timeout_ms", "heartbeat_ms",
		"assignors")
	if err == nil && given.Protocol == "consumer" {
		err = lines.Unsupported("the client has no groups of KIP-848")
	}
	config := kafka.ReaderConfig{
		Brokers: d.connect.Servers(), Dialer: d.dialer, GroupID: given.Group,
		JoinGroupBackoff: joinPause,
		// "none" is an error to be reported; the others are where to start.
		OffsetOutOfRangeError: given.OffsetReset == "none",
		StartOffset: map[string]int64{
			"earliest": kafka.FirstOffset, "latest": kafka.LastOffset,
		}[given.OffsetReset],
	}
	if given.Isolation == "read_committed" {
		config.IsolationLevel = kafka.ReadCommitted
	}
	if given.MaxWaitMs > 0 {
		config.MaxWait = lines.Milliseconds(given.MaxWaitMs)
	}
	if given.SessionTimeoutMs != nil {
		config.SessionTimeout = lines.Milliseconds(*given.SessionTimeoutMs)
	}
	if given.HeartbeatMs != nil {
		config.HeartbeatInterval = lines.Milliseconds(*given.HeartbeatMs)
	}
	for _, name := range given.Assignors {
		balancer, is := map[string]kafka.GroupBalancer{
			"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{},
		}[name]
		if !is {
			return config, lines.Unsupported("the client has no balancer " + name)
		}
		config.GroupBalancers = append(config.GroupBalancers, balancer)
	}
	if given.PartitionMaxBytes != nil {
		config.MaxBytes = int(*given.PartitionMaxBytes)
	}
	return config, err
}

func (d *data) assign(call lines.Call) (lines.Returned, error) {
	config, err := d.readerConfig()
	if err != nil {
		return lines.Returned{}, err
	}
	config.GroupID = "" // a member of a group cannot choose its partitions
	for _, reader := range d.all() {
		_ = reader.Close()
	}
	d.readers, d.polled = map[lines.Partition]*kafka.Reader{}, map[lines.Partition]kafka.Message{}
	for partition, start := range call.Offsets {
		config.Topic, config.Partition = partition.Topic, int(partition.Index)
		offset := config.StartOffset
		if start != nil {
			offset = *start
		}
		reader, err := lines.Ask(func() (*kafka.Reader, error) {
			reader := kafka.NewReader(config)
			if start == nil && offset == 0 {
				return reader, nil
			}
			return reader, reader.SetOffset(offset)
		})
		if err != nil {
			return lines.Returned{}, err
		}
		d.readers[partition] = reader
	}
	return lines.Returned{}, nil
}

func (d *data) subscribe(call lines.Call) (lines.Returned, error) {
	if call.Pattern != "" {
		return lines.Returned{}, lines.Unsupported("a Reader subscribes to topics by their names")
	}
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	config, err := d.readerConfig()
	if err != nil {
		return lines.Returned{}, err
	}
	if config.OffsetOutOfRangeError {
		return lines.Returned{}, lines.Unsupported("a member without an offset starts at one end")
	}
	if config.GroupID == "" || d.group != nil {
		return lines.Returned{}, lines.Unsupported("a Reader has one subscription, as a member of a group")
	}
	config.GroupTopics = names
	d.polled = map[lines.Partition]kafka.Message{}
	d.group, err = lines.Ask(func() (*kafka.Reader, error) { return kafka.NewReader(config), nil })
	return lines.Returned{}, err
}

// poll reads from every reader at once. The first error ends it.
func (d *data) poll(call lines.Call) (lines.Returned, error) {
	count, err := call.Count()
	if err != nil {
		return lines.Returned{}, err
	}
	readers := d.all()
	if _, err := d.readerConfig(); err != nil {
		return lines.Returned{}, err
	}
	if len(readers) == 0 {
		return lines.Returned{}, lines.Unsupported("the subscription was not possible")
	}
	ctx, cancel := context.WithTimeout(context.Background(), lines.Milliseconds(call.Ms))
	defer cancel()
	found := []lines.Record{}
	var failed error
	var mutex sync.Mutex
	var group sync.WaitGroup
	for _, reader := range readers {
		group.Add(1)
		go func() {
			defer group.Done()
			for ctx.Err() == nil {
				message, err := reader.FetchMessage(ctx)
				mutex.Lock()
				if err == nil {
					found = append(found, d.record(message))
				} else if ctx.Err() == nil && failed == nil {
					failed = err
				}
				if failed != nil || len(found) >= count {
					cancel()
				}
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	if failed != nil {
		return lines.Returned{}, lines.Raised{Err: failed, Records: found}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}

func (d *data) record(message kafka.Message) lines.Record {
	d.polled[lines.Partition{Topic: message.Topic, Index: int32(message.Partition)}] = message
	found := lines.Record{
		Topic: message.Topic, Partition: int32(message.Partition), Offset: message.Offset,
		Timestamp: lines.Millis(message.Time),
		Key:       lines.Text(message.Key), Value: lines.Text(message.Value),
	}
	for _, each := range message.Headers {
		found.Headers = append(found.Headers, [2]any{each.Key, lines.Text(each.Value)})
	}
	return found
}

func (d *data) position(call lines.Call) (lines.Returned, error) {
	found := map[string]int64{}
	for _, partition := range call.Partitions {
		reader := d.readers[partition]
		if reader == nil {
			return lines.Returned{}, lines.Unsupported("a Reader of a group has no offset")
		}
		found[partition.String()] = reader.Offset()
	}
	return lines.Returned{Raw: found, Result: found}, nil
}

func (d *data) closeConsumer(lines.Call) (lines.Returned, error) {
	readers := d.all()
	d.readers, d.group = nil, nil
	_, err := lines.Ask(func() (any, error) {
		for _, reader := range readers {
			if err := reader.Close(); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return lines.Returned{}, err
}

func (d *data) commit(call lines.Call) (lines.Returned, error) {
	if d.group == nil {
		return lines.Returned{}, lines.Unsupported("only a member of a group commits")
	}
	messages := []kafka.Message{}
	if call.Offsets == nil {
		for _, message := range d.polled {
			messages = append(messages, message)
		}
	}
	for partition, offset := range call.Offsets { // it commits the offset after a message's
		messages = append(messages, kafka.Message{
			Topic: partition.Topic, Partition: int(partition.Index), Offset: *offset - 1,
		})
	}
	_, err := lines.Ask(func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), d.connect.Timeout())
		defer cancel()
		return nil, d.group.CommitMessages(ctx, messages...)
	})
	return lines.Returned{}, err
}

func (d *data) committed(call lines.Call) (lines.Returned, error) {
	config, err := d.readerConfig()
	if err != nil {
		return lines.Returned{}, err
	}
	request := &kafka.OffsetFetchRequest{GroupID: config.GroupID, Topics: map[string][]int{}}
	for _, each := range call.Partitions {
		request.Topics[each.Topic] = append(request.Topics[each.Topic], int(each.Index))
	}
	answer, err := ask(func() (*kafka.OffsetFetchResponse, error) {
		return d.client.OffsetFetch(context.Background(), request)
	}, func(answer *kafka.OffsetFetchResponse) error { return answer.Error })
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for topic, partitions := range answer.Topics {
		for _, each := range partitions {
			key := lines.Partition{Topic: topic, Index: int32(each.Partition)}.String()
			found[key] = each.CommittedOffset
			if each.Error != nil {
				found[key] = d.describe(each.Error)
			}
		}
	}
	return lines.Returned{Raw: *answer, Result: found}, nil
}
