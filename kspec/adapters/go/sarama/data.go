package main

import (
	"sync"
	"time"

	"github.com/IBM/sarama"

	"kspec-adapters/lines"
)

// dataOptions differ from the defaults.
var dataOptions = map[string]string{
	"Producer.Timeout":                               "timeout_ms",
	"Producer.Return.Successes":                      "true",
	"Producer.Partitioner":                           "ManualPartitioner, for records with a partition",
	"Net.MaxOpenRequests of an idempotent producer":  "1, which it requires",
	"RequiredAcks of a transactional producer":       "WaitForAll, which it requires",
	"Consumer.Return.Errors":                         "true",
	"Consumer.Group.Rebalance.Retry.Backoff":         "100ms",
	"Consumer.Offsets.AutoCommit.Enable":             "false",
	"Consumer.Fetch.Default":                         "partition_max_bytes, where the case has it",
	"Producer.MaxMessageBytes, also a batch's limit": "batch_bytes, where the case has it",
}

// data is a producer, and a consumer of partitions or a member of a group, each made by its first call.
type data struct {
	servers  []string
	config   func() *sarama.Config
	connect  lines.Call
	admin    func() (sarama.ClusterAdmin, error)
	describe func(error) any
	producer sarama.AsyncProducer
	consumer sarama.Consumer
	wanted   map[lines.Partition]int64 // where to start, of partitions that nothing consumes yet
	assigned []sarama.PartitionConsumer
	member   *member
	reports  *reports
	offsets  *offsets
}

func (d *data) operations() map[string]lines.Operation {
	return map[string]lines.Operation{
		"produce": d.produce, "send": d.send, "begin_transaction": d.beginTransaction,
		"send_offsets": d.sendOffsets, "commit_transaction": d.commitTransaction,
		"abort_transaction": d.abortTransaction, "assign": d.assign, "subscribe": d.subscribe,
		"poll": d.poll, "commit": d.commit, "committed": d.committed, "unsubscribe": d.closeConsumer,
		"assignment": d.assignment, "close_consumer": d.closeConsumer,
	}
}

func (d *data) close() {
	producer, offsets := d.producer, d.offsets
	d.producer, d.offsets = nil, nil
	lines.Within(time.Second, func() {
		if offsets != nil {
			offsets.close()
		}
		_, _ = d.closeConsumer(lines.Call{})
	})
	lines.Within(time.Second, func() {
		if producer != nil {
			_ = producer.Close()
		}
	})
}

// closeConsumer also ends a subscription, for which there is no call of its own.
func (d *data) closeConsumer(lines.Call) (lines.Returned, error) {
	consumer, member, assigned := d.consumer, d.member, d.assigned
	d.consumer, d.member, d.assigned, d.wanted = nil, nil, nil, nil
	if d.reports != nil {
		d.reports.stop()
		d.reports = nil
	}
	for _, each := range assigned {
		_ = each.Close()
	}
	_, err := lines.Ask(func() (any, error) {
		if member != nil {
			return nil, member.close()
		}
		if consumer != nil {
			return nil, consumer.Close()
		}
		return nil, nil
	})
	return lines.Returned{}, err
}

// ---- the producer -----------------------------------------------------------------------------------------

func (d *data) producerConfig(manual bool) (*sarama.Config, error) {
	var given lines.ProducerOptions
	err := lines.Options(d.connect.Producer, &given, "acks", "idempotence", "compression",
		"linger_ms", "batch_bytes", "max_in_flight", "delivery_timeout_ms", "metadata_age_ms",
		"transactional_id", "transaction_timeout_ms")
	if err != nil {
		return nil, err
	}
	config := d.config()
	if given.MetadataAgeMs != nil {
		config.Metadata.RefreshFrequency = lines.Milliseconds(*given.MetadataAgeMs)
	}
	config.Producer.Timeout = d.connect.Timeout()
	config.Producer.Return.Successes = true
	if manual {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	if given.Acks != nil {
		number, err := given.AcksNumber()
		if err != nil {
			return nil, err
		}
		config.Producer.RequiredAcks = sarama.RequiredAcks(number)
	}
	if given.MaxInFlight != nil {
		config.Net.MaxOpenRequests = *given.MaxInFlight
	}
	if given.Idempotence != nil && *given.Idempotence {
		if given.MaxInFlight != nil && *given.MaxInFlight > 1 {
			return nil, lines.Unsupported("an idempotent producer has one request in flight")
		}
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	if given.Compression != "" {
		config.Producer.Compression = map[string]sarama.CompressionCodec{
			"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
			"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4,
			"zstd": sarama.CompressionZSTD,
		}[given.Compression]
	}
	if given.LingerMs != nil {
		config.Producer.Flush.Frequency = lines.Milliseconds(*given.LingerMs)
	}
	if given.BatchBytes != nil {
		config.Producer.MaxMessageBytes = int(*given.BatchBytes)
	}
	transactional(config, given)
	return config, nil
}

// outcome is where to keep the outcome of a record.
type outcome struct {
	outcomes *lines.Outcomes
	number   int
}

func (d *data) madeProducer(manual bool) (sarama.AsyncProducer, error) {
	if d.producer != nil {
		return d.producer, nil
	}
	config, err := d.producerConfig(manual)
	if err != nil {
		return nil, err
	}
	producer, err := lines.Ask(func() (sarama.AsyncProducer, error) {
		return sarama.NewAsyncProducer(d.servers, config)
	})
	if err != nil {
		return nil, err
	}
	d.producer = producer
	go func() {
		for written := range producer.Successes() {
			to := written.Metadata.(outcome)
			to.outcomes.Set(to.number, lines.Place{
				Topic: written.Topic, Partition: written.Partition, Offset: written.Offset,
			})
		}
	}()
	go func() {
		for failed := range producer.Errors() {
			to := failed.Msg.Metadata.(outcome)
			to.outcomes.Set(to.number, d.describe(failed.Err))
		}
	}()
	return producer, nil
}

func (d *data) produce(call lines.Call) (lines.Returned, error) {
	outcomes, err := d.handOver(call)
	if err != nil {
		return lines.Returned{}, err
	}
	found := outcomes.Wait()
	return lines.Returned{Raw: found, Result: found}, nil
}

// handOver gives records to the producer and returns where their outcomes will be.
func (d *data) handOver(call lines.Call) (*lines.Outcomes, error) {
	records, err := call.NewRecords()
	if err != nil {
		return nil, err
	}
	manual := len(records) > 0 && records[0].Partition != nil
	producer, err := d.madeProducer(manual)
	if err != nil {
		return nil, err
	}
	outcomes := lines.NewOutcomes(len(records), d.connect.OutcomeTime())
	messages := []*sarama.ProducerMessage{}
	for number, each := range records {
		message := &sarama.ProducerMessage{Topic: each.Topic, Metadata: outcome{outcomes, number}}
		if each.Key != nil {
			message.Key = sarama.StringEncoder(*each.Key)
		}
		if each.Value != nil {
			message.Value = sarama.StringEncoder(*each.Value)
		}
		for _, header := range each.Headers {
			given := sarama.RecordHeader{Key: lines.Bytes(header[0]), Value: lines.Bytes(header[1])}
			message.Headers = append(message.Headers, given)
		}
		if each.Partition != nil {
			message.Partition = *each.Partition
		}
		messages = append(messages, message)
	}
	over := time.After(d.connect.OutcomeTime())
	for _, message := range messages {
		select {
		case producer.Input() <- message:
		case <-over: // it takes no more records while its queues are full
			return outcomes, nil
		}
	}
	return outcomes, nil
}

// ---- the consumer -----------------------------------------------------------------------------------------

func (d *data) consumerConfig() (*sarama.Config, lines.ConsumerOptions, error) {
	var given lines.ConsumerOptions
	err := lines.Options(d.connect.Consumer, &given, "group", "offset_reset", "isolation",
		"max_wait_ms", "partition_max_bytes", "rack", "protocol", "instance_id",
		"session_timeout_ms", "heartbeat_ms", "assignors", "metadata_age_ms")
	if err == nil && given.Protocol == "consumer" {
		err = lines.Unsupported("the client has no groups of KIP-848")
	}
	if err != nil {
		return nil, given, err
	}
	config := d.config()
	config.Consumer.Return.Errors = true
	config.Consumer.Group.Rebalance.Retry.Backoff = lines.Milliseconds(100)
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = starts[given.OffsetReset]
	if given.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if given.MaxWaitMs > 0 {
		config.Consumer.MaxWaitTime = lines.Milliseconds(given.MaxWaitMs)
	}
	if given.PartitionMaxBytes != nil {
		config.Consumer.Fetch.Default = *given.PartitionMaxBytes
	}
	config.RackID = given.Rack
	if given.MetadataAgeMs != nil {
		config.Metadata.RefreshFrequency = lines.Milliseconds(*given.MetadataAgeMs)
	}
	config.Consumer.Group.InstanceId = given.InstanceID
	if given.SessionTimeoutMs != nil {
		config.Consumer.Group.Session.Timeout = lines.Milliseconds(*given.SessionTimeoutMs)
	}
	if given.HeartbeatMs != nil {
		config.Consumer.Group.Heartbeat.Interval = lines.Milliseconds(*given.HeartbeatMs)
	}
	if given.Assignors != nil {
		config.Consumer.Group.Rebalance.GroupStrategies = nil
	}
	for _, name := range given.Assignors {
		strategy, is := map[string]func() sarama.BalanceStrategy{
			"range": sarama.NewBalanceStrategyRange, "roundrobin": sarama.NewBalanceStrategyRoundRobin,
			"sticky":             sarama.NewBalanceStrategySticky,
			"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
		}[name]
		if !is {
			return nil, given, lines.Unsupported("the client has no strategy " + name)
		}
		config.Consumer.Group.Rebalance.GroupStrategies = append(
			config.Consumer.Group.Rebalance.GroupStrategies, strategy())
	}
	return config, given, nil
}

// starts are the offsets of a consumer without one: "none" is what sarama does once it consumes.
var starts = map[string]int64{
	"": sarama.OffsetNewest, "earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest,
	"none": sarama.OffsetNewest,
}

// reports are what a consumer has said and nobody has polled. A partition's consumer and a group's
// member write records to one channel and errors to another.
type reports struct {
	records chan *sarama.ConsumerMessage
	errors  chan error
	ended   chan struct{} // a partition's consumer gave up
	failed  chan error    // a member's Consume returned an error
	resumed chan struct{} // the member may call Consume again
	resumes bool          // a poll returned that error, and the next one resumes the member
	stopped chan struct{}
	once    sync.Once
}

func newReports() *reports {
	return &reports{
		records: make(chan *sarama.ConsumerMessage), errors: make(chan error),
		ended: make(chan struct{}), stopped: make(chan struct{}),
		failed: make(chan error), resumed: make(chan struct{}),
	}
}

func (r *reports) stop() { r.once.Do(func() { close(r.stopped) }) }

func (r *reports) record(record *sarama.ConsumerMessage) bool {
	select {
	case r.records <- record:
		return true
	case <-r.stopped:
		return false
	}
}

func (r *reports) error(err error) {
	select {
	case r.errors <- err:
	case <-r.stopped:
	}
}

// fail waits until a poll has returned the error and another one begins. It returns false if there is none.
func (r *reports) fail(err error) bool {
	select {
	case r.failed <- err:
	case <-r.stopped:
		return false
	}
	select {
	case <-r.resumed:
		return true
	case <-r.stopped:
		return false
	}
}

func (r *reports) resume() {
	if !r.resumes {
		return
	}
	r.resumes = false
	select {
	case r.resumed <- struct{}{}:
	case <-r.stopped:
	}
}

func (r *reports) end() {
	select {
	case r.ended <- struct{}{}:
	case <-r.stopped:
	}
}

func (d *data) assign(call lines.Call) (lines.Returned, error) {
	config, given, err := d.consumerConfig()
	if err != nil {
		return lines.Returned{}, err
	}
	if d.consumer == nil {
		d.consumer, err = lines.Ask(func() (sarama.Consumer, error) {
			return sarama.NewConsumer(d.servers, config)
		})
		if err != nil {
			return lines.Returned{}, err
		}
	}
	if d.reports != nil {
		d.reports.stop()
	}
	for _, each := range d.assigned {
		_ = each.Close()
	}
	d.assigned, d.reports, d.wanted = nil, newReports(), map[lines.Partition]int64{}
	for partition, start := range call.Offsets {
		d.wanted[partition] = starts[given.OffsetReset]
		if start == nil {
			continue
		}
		if given.OffsetReset != "" && given.OffsetReset != "none" {
			why := "a partition's consumer has no policy for an offset that is out of range"
			return lines.Returned{}, lines.Unsupported(why)
		}
		d.wanted[partition] = *start
	}
	return lines.Returned{}, nil
}

// consume begins with the partitions that were assigned. sarama checks an offset when it begins.
func (d *data) consume() error {
	for partition, offset := range d.wanted {
		consumer, err := lines.Ask(func() (sarama.PartitionConsumer, error) {
			return d.consumer.ConsumePartition(partition.Topic, partition.Index, offset)
		})
		if err != nil {
			return err
		}
		delete(d.wanted, partition)
		d.assigned = append(d.assigned, consumer)
		go forward(consumer, d.reports)
	}
	return nil
}

// forward ends with the consumer, which ends if it cannot go on, or if it is closed.
func forward(consumer sarama.PartitionConsumer, to *reports) {
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		for record := range consumer.Messages() {
			to.record(record)
		}
	}()
	go func() {
		defer both.Done()
		for err := range consumer.Errors() {
			to.error(err)
		}
	}()
	both.Wait()
	to.end()
}

func (d *data) subscribe(call lines.Call) (lines.Returned, error) {
	if call.Pattern != "" {
		return lines.Returned{}, lines.Unsupported("a member subscribes to topics by their names")
	}
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	config, given, err := d.consumerConfig()
	if err != nil {
		return lines.Returned{}, err
	}
	if d.member != nil {
		return lines.Returned{}, lines.Unsupported("a member's subscription cannot change")
	}
	if given.OffsetReset == "none" {
		return lines.Returned{}, lines.Unsupported("a member without an offset starts at one end")
	}
	group, err := lines.Ask(func() (sarama.ConsumerGroup, error) {
		return sarama.NewConsumerGroup(d.servers, given.Group, config)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	d.reports = newReports()
	d.member = newMember(group, names, d.reports)
	return lines.Returned{}, nil
}

// poll goes on after an error as sarama does, which reports errors beside the records. An error is the
// call's if the records did not come in time, or if a partition's consumer gave up. An error that Consume
// returned is that of the call.
func (d *data) poll(call lines.Call) (lines.Returned, error) {
	count, err := call.Count()
	if err != nil {
		return lines.Returned{}, err
	}
	if _, _, err := d.consumerConfig(); err != nil {
		return lines.Returned{}, err
	}
	if d.reports == nil {
		return lines.Returned{}, lines.Unsupported("the subscription was not possible")
	}
	if err := d.consume(); err != nil {
		return lines.Returned{}, err
	}
	d.reports.resume()
	over := time.After(lines.Milliseconds(call.Ms))
	found := []lines.Record{}
	var last error
polling:
	for len(found) < count {
		select {
		case record := <-d.reports.records:
			row := lines.Record{
				Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
				Timestamp: lines.Millis(record.Timestamp),
				Key:       lines.Text(record.Key), Value: lines.Text(record.Value),
			}
			for _, each := range record.Headers {
				row.Headers = append(row.Headers, [2]any{string(each.Key), lines.Text(each.Value)})
			}
			found = append(found, row)
			if d.member != nil {
				d.member.polled(record)
			}
		case last = <-d.reports.errors:
		case err := <-d.reports.failed:
			d.reports.resumes = true
			return lines.Returned{}, lines.Raised{Err: err, Records: found}
		case <-d.reports.ended:
			break polling
		case <-over:
			break polling
		}
	}
	if len(found) < count && last != nil {
		return lines.Returned{}, lines.Raised{Err: last, Records: found}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}
