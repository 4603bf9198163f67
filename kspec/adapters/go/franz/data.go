package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kspec-adapters/lines"
)

// dataOptions differ from the defaults.
var dataOptions = map[string]string{
	"ProduceRequestTimeout":                  "timeout_ms",
	"RecordPartitioner":                      "ManualPartitioner, for records with a partition",
	"DisableAutoCommit of a group's client":  "true, but with auto_commit_ms",
	"ServerSideBalancer of a group's client": "in groups of KIP-848, with the StickyBalancer (uniform) or RangeBalancer",
}

// data is a producer and a consumer, each made by its first call.
type data struct {
	common   []kgo.Opt
	connect  lines.Call
	describe func(error) any
	producer *kgo.Client
	consumer *kgo.Client
	// processing is the session of process, nil without it.
	processing *processing
	reset      *kgo.Offset
	// subscribed are the topics of the consumer, nil if it has partitions or a pattern.
	subscribed []string
	mutex      sync.Mutex
	assigned   map[lines.Partition]bool
}

func (d *data) operations() map[string]lines.Operation {
	return map[string]lines.Operation{
		"produce": d.produce, "send": d.send, "begin_transaction": d.beginTransaction,
		"send_offsets": d.sendOffsets, "commit_transaction": d.commitTransaction,
		"abort_transaction": d.abortTransaction, "assign": d.assign, "seek": d.seek,
		"pause": d.pause, "resume": d.resume, "subscribe": d.subscribe,
		"assignment": d.assignment, "poll": d.poll, "commit": d.commit,
		"committed": d.committed, "close_consumer": d.closeConsumer, "process": d.process,
	}
}

func (d *data) close() {
	d.endProcessing()
	for _, client := range []*kgo.Client{d.producer, d.consumer} {
		if client != nil {
			client.Close()
		}
	}
	d.producer, d.consumer = nil, nil
}

func (d *data) madeProducer(manual bool) (*kgo.Client, error) {
	if d.producer != nil {
		return d.producer, nil
	}
	options, err := d.producerOptions(manual)
	if err != nil {
		return nil, err
	}
	options = append(options, d.common...)
	d.producer, err = lines.Ask(func() (*kgo.Client, error) { return kgo.NewClient(options...) })
	return d.producer, err
}

// producerOptions returns those that the case chose.
func (d *data) producerOptions(manual bool) ([]kgo.Opt, error) {
	var given lines.ProducerOptions
	err := lines.Options(d.connect.Producer, &given, "acks", "idempotence", "compression",
		"linger_ms", "batch_bytes", "max_in_flight", "delivery_timeout_ms", "transactional_id",
		"transaction_timeout_ms", "metadata_age_ms", "partitioner")
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{kgo.ProduceRequestTimeout(d.connect.Timeout())}
	if manual {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if given.Acks != nil {
		number, err := given.AcksNumber()
		if err != nil {
			return nil, err
		}
		acks := map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}[number]
		options = append(options, kgo.RequiredAcks(acks))
	}
	if given.Idempotence != nil && !*given.Idempotence {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if given.Compression != "" {
		codec := map[string]kgo.CompressionCodec{
			"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
			"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
			"zstd": kgo.ZstdCompression(),
		}[given.Compression]
		options = append(options, kgo.ProducerBatchCompression(codec))
	}
	if given.LingerMs != nil {
		options = append(options, kgo.ProducerLinger(lines.Milliseconds(*given.LingerMs)))
	}
	if given.BatchBytes != nil {
		options = append(options, kgo.ProducerBatchMaxBytes(*given.BatchBytes))
	}
	if given.MaxInFlight != nil {
		options = append(options, kgo.MaxProduceRequestsInflightPerBroker(*given.MaxInFlight))
	}
	if given.DeliveryTimeoutMs > 0 {
		options = append(options, kgo.RecordDeliveryTimeout(lines.Milliseconds(given.DeliveryTimeoutMs)))
	}
	if given.MetadataAgeMs != nil {
		options = append(options, kgo.MetadataMaxAge(lines.Milliseconds(*given.MetadataAgeMs)))
	}
	if given.TransactionalID != "" {
		options = append(options, kgo.TransactionalID(given.TransactionalID))
	}
	if given.TransactionTimeoutMs != nil {
		timeout := lines.Milliseconds(*given.TransactionTimeoutMs)
		options = append(options, kgo.TransactionTimeout(timeout))
	}
	return options, nil
}

func (d *data) produce(call lines.Call) (lines.Returned, error) {
	records, err := call.NewRecords()
	if err != nil {
		return lines.Returned{}, err
	}
	manual := len(records) > 0 && records[0].Partition != nil
	client, err := d.madeProducer(manual)
	if err != nil {
		return lines.Returned{}, err
	}
	outcomes := lines.NewOutcomes(len(records), d.connect.OutcomeTime())
	for number, each := range records {
		client.Produce(context.Background(), newRecord(each), func(record *kgo.Record, err error) {
			if err != nil {
				outcomes.Set(number, d.describe(err))
				return
			}
			outcomes.Set(number, lines.Place{
				Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
			})
		})
	}
	found := outcomes.Wait()
	return lines.Returned{Raw: found, Result: found}, nil
}

func newRecord(given lines.NewRecord) *kgo.Record {
	record := &kgo.Record{
		Topic: given.Topic, Key: lines.Bytes(given.Key), Value: lines.Bytes(given.Value),
	}
	for _, each := range given.Headers {
		header := kgo.RecordHeader{Key: *each[0], Value: lines.Bytes(each[1])}
		record.Headers = append(record.Headers, header)
	}
	if given.Partition != nil {
		record.Partition = *given.Partition
	}
	return record
}

// send hands records over; Produce tells a failure of one later, to its function.
func (d *data) send(call lines.Call) (lines.Returned, error) {
	records, err := call.NewRecords()
	if err != nil {
		return lines.Returned{}, err
	}
	client, err := d.madeProducer(len(records) > 0 && records[0].Partition != nil)
	if err != nil {
		return lines.Returned{}, err
	}
	for _, each := range records {
		client.Produce(context.Background(), newRecord(each), nil)
	}
	return lines.Returned{}, nil
}

func (d *data) beginTransaction(lines.Call) (lines.Returned, error) {
	return d.transaction((*kgo.Client).BeginTransaction)
}

// commitTransaction flushes first, as the documentation of EndTransaction demands.
func (d *data) commitTransaction(lines.Call) (lines.Returned, error) {
	return d.transaction(func(client *kgo.Client) error {
		ctx := context.Background()
		if err := client.Flush(ctx); err != nil {
			return err
		}
		return client.EndTransaction(ctx, kgo.TryCommit)
	})
}

// abortTransaction drops buffered records first, as the documentation of EndTransaction demands.
func (d *data) abortTransaction(lines.Call) (lines.Returned, error) {
	return d.transaction(func(client *kgo.Client) error {
		ctx := context.Background()
		if err := client.AbortBufferedRecords(ctx); err != nil {
			return err
		}
		return client.EndTransaction(ctx, kgo.TryAbort)
	})
}

func (d *data) sendOffsets(lines.Call) (lines.Returned, error) {
	return lines.Returned{}, lines.Unsupported(
		"offsets are only sent by GroupTransactSession, which also consumes and ends the transaction")
}

func (d *data) transaction(work func(*kgo.Client) error) (lines.Returned, error) {
	client, err := d.madeProducer(true)
	if err != nil {
		return lines.Returned{}, err
	}
	_, err = lines.Ask(func() (any, error) { return nil, work(client) })
	return lines.Returned{}, err
}

// consumerOptions returns those that the case chose, and keeps where to start without an offset.
func (d *data) consumerOptions() ([]kgo.Opt, error) {
	var given lines.ConsumerOptions
	err := lines.Options(d.connect.Consumer, &given, "group", "offset_reset", "isolation",
		"max_wait_ms", "partition_max_bytes", "rack", "protocol", "instance_id",
		"session_timeout_ms", "heartbeat_ms", "metadata_age_ms", "assignors", "remote_assignor",
		"auto_commit_ms")
	if err != nil {
		return nil, err
	}
	options := append([]kgo.Opt{}, d.common...)
	resets := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(),
		"none": kgo.NoResetOffset(),
	}
	if reset, is := resets[given.OffsetReset]; is {
		d.reset = &reset
		options = append(options, kgo.ConsumeResetOffset(reset))
	}
	if given.Isolation == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if given.MaxWaitMs > 0 {
		options = append(options, kgo.FetchMaxWait(lines.Milliseconds(given.MaxWaitMs)))
	}
	if given.PartitionMaxBytes != nil {
		options = append(options, kgo.FetchMaxPartitionBytes(*given.PartitionMaxBytes))
	}
	if given.Rack != "" {
		options = append(options, kgo.Rack(given.Rack))
	}
	if given.MetadataAgeMs != nil {
		options = append(options, kgo.MetadataMaxAge(lines.Milliseconds(*given.MetadataAgeMs)))
	}
	if given.Group == "" {
		return options, nil
	}
	if given.OffsetReset == "none" { // ConsumeResetOffset only covers offsets that are out of range
		options = append(options, kgo.ConsumeStartOffset(kgo.NewOffset().AtCommitted()))
	}
	ofGroup, err := d.groupOptions(given)
	return append(options, ofGroup...), err
}

// groupOptions keep track of the assignment too, for which the client has no call.
func (d *data) groupOptions(given lines.ConsumerOptions) ([]kgo.Opt, error) {
	options := []kgo.Opt{
		kgo.ConsumerGroup(given.Group),
		kgo.OnPartitionsAssigned(d.tracked(true)), kgo.OnPartitionsRevoked(d.revoked(given.AutoCommitMs != nil)),
		kgo.OnPartitionsLost(d.tracked(false)),
	}
	if given.AutoCommitMs != nil {
		options = append(options, kgo.AutoCommitInterval(lines.Milliseconds(*given.AutoCommitMs)))
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	if given.Protocol == "streams" {
		return nil, lines.Unsupported("the client does not join groups of KIP-1071")
	}
	if given.Protocol == "consumer" { // its balancer stands for the coordinator's assignor
		assignor, is := map[string]func() kgo.GroupBalancer{
			"": kgo.StickyBalancer, "uniform": kgo.StickyBalancer, "range": kgo.RangeBalancer,
		}[given.RemoteAssignor]
		if !is {
			return nil, lines.Unsupported("the client has no assignor " + given.RemoteAssignor)
		}
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(assignor()))
	}
	if given.InstanceID != "" {
		options = append(options, kgo.InstanceID(given.InstanceID))
	}
	if given.SessionTimeoutMs != nil {
		options = append(options, kgo.SessionTimeout(lines.Milliseconds(*given.SessionTimeoutMs)))
	}
	if given.HeartbeatMs != nil {
		options = append(options, kgo.HeartbeatInterval(lines.Milliseconds(*given.HeartbeatMs)))
	}
	if given.Assignors != nil {
		balancers := []kgo.GroupBalancer{}
		for _, name := range given.Assignors {
			balancers = append(balancers, map[string]func() kgo.GroupBalancer{
				"range": kgo.RangeBalancer, "roundrobin": kgo.RoundRobinBalancer,
				"sticky": kgo.StickyBalancer, "cooperative-sticky": kgo.CooperativeStickyBalancer,
			}[name]())
		}
		options = append(options, kgo.Balancers(balancers...))
	}
	return options, nil
}

// revoked commits first if the client commits by itself: its own function would do so, as its documentation says.
func (d *data) revoked(commits bool) func(context.Context, *kgo.Client, map[string][]int32) {
	drop := d.tracked(false)
	return func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
		if commits {
			_ = client.CommitUncommittedOffsets(ctx) // the client tells nobody of a failure either
		}
		drop(ctx, client, partitions)
	}
}

func (d *data) tracked(is bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		for topic, indexes := range partitions {
			for _, index := range indexes {
				if is {
					d.assigned[lines.Partition{Topic: topic, Index: index}] = true
				} else {
					delete(d.assigned, lines.Partition{Topic: topic, Index: index})
				}
			}
		}
	}
}

func (d *data) assign(call lines.Call) (lines.Returned, error) {
	options, err := d.consumerOptions()
	if err != nil {
		return lines.Returned{}, err
	}
	wanted := map[string]map[int32]kgo.Offset{}
	for partition, start := range call.Offsets {
		if wanted[partition.Topic] == nil {
			wanted[partition.Topic] = map[int32]kgo.Offset{}
		}
		offset := kgo.NewOffset()
		if start != nil {
			offset = offset.At(*start)
		} else if d.reset != nil {
			offset = *d.reset
		}
		wanted[partition.Topic][partition.Index] = offset
	}
	return lines.Returned{}, d.consume(append(options, kgo.ConsumePartitions(wanted)))
}

// seek drops what the client has buffered of the partitions.
func (d *data) seek(call lines.Call) (lines.Returned, error) {
	wanted := map[string]map[int32]kgo.EpochOffset{}
	for partition, offset := range call.Offsets {
		if wanted[partition.Topic] == nil {
			wanted[partition.Topic] = map[int32]kgo.EpochOffset{}
		}
		wanted[partition.Topic][partition.Index] = kgo.EpochOffset{Epoch: -1, Offset: *offset}
	}
	return d.onConsumer(func(client *kgo.Client) { client.SetOffsets(wanted) })
}

func (d *data) pause(call lines.Call) (lines.Returned, error) {
	wanted := indexesByTopic(call.Partitions)
	return d.onConsumer(func(client *kgo.Client) { client.PauseFetchPartitions(wanted) })
}

func (d *data) resume(call lines.Call) (lines.Returned, error) {
	wanted := indexesByTopic(call.Partitions)
	return d.onConsumer(func(client *kgo.Client) { client.ResumeFetchPartitions(wanted) })
}

func indexesByTopic(partitions []lines.Partition) map[string][]int32 {
	found := map[string][]int32{}
	for _, each := range partitions {
		found[each.Topic] = append(found[each.Topic], each.Index)
	}
	return found
}

func (d *data) onConsumer(work func(*kgo.Client)) (lines.Returned, error) {
	if d.consumer == nil {
		return lines.Returned{}, lines.Unsupported("the subscription was not possible")
	}
	_, err := lines.Ask(func() (any, error) { work(d.consumer); return nil, nil })
	return lines.Returned{}, err
}

func (d *data) subscribe(call lines.Call) (lines.Returned, error) {
	options, err := d.consumerOptions()
	if err != nil {
		return lines.Returned{}, err
	}
	if call.Pattern != "" {
		wanted := []kgo.Opt{kgo.ConsumeRegex(), kgo.ConsumeTopics(call.Pattern)}
		return lines.Returned{}, d.consume(append(options, wanted...))
	}
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	if d.consumer == nil || d.subscribed == nil {
		err = d.consume(append(options, kgo.ConsumeTopics(names...)))
		d.subscribed = names
		return lines.Returned{}, err
	}
	dropped := slices.DeleteFunc(slices.Clone(d.subscribed), func(name string) bool {
		return slices.Contains(names, name)
	})
	_, err = lines.Ask(func() (any, error) {
		d.consumer.AddConsumeTopics(names...)
		d.consumer.PurgeTopicsFromConsuming(dropped...)
		return nil, nil
	})
	d.subscribed = names
	return lines.Returned{}, err
}

func (d *data) assignment(lines.Call) (lines.Returned, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	names := lines.Keys(slices.Collect(maps.Keys(d.assigned)))
	return lines.Returned{Raw: names, Result: names}, nil
}

// commit commits the given offsets, or those after the records that were polled.
func (d *data) commit(call lines.Call) (lines.Returned, error) {
	if d.processing != nil && call.Offsets == nil {
		return d.processing.commit()
	}
	if d.consumer == nil {
		return lines.Returned{}, lines.Unsupported("the subscription was not possible")
	}
	offsets := d.consumer.UncommittedOffsets()
	if call.Offsets != nil {
		offsets = map[string]map[int32]kgo.EpochOffset{}
		for partition, offset := range call.Offsets {
			if offsets[partition.Topic] == nil {
				offsets[partition.Topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[partition.Topic][partition.Index] = kgo.EpochOffset{Epoch: -1, Offset: *offset}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.connect.Timeout())
	defer cancel()
	answer, err := lines.Ask(func() (answer *kmsg.OffsetCommitResponse, failed error) {
		d.consumer.CommitOffsetsSync(ctx, offsets, func(
			_ *kgo.Client, _ *kmsg.OffsetCommitRequest, given *kmsg.OffsetCommitResponse, err error,
		) {
			answer, failed = given, err
		})
		return answer, failed
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, topic := range answer.Topics {
		for _, row := range topic.Partitions {
			key := lines.Partition{Topic: topic.Topic, Index: row.Partition}.String()
			if err := kerr.ErrorForCode(row.ErrorCode); err != nil {
				found[key] = d.describe(err)
			} else {
				found[key] = nil
			}
		}
	}
	return lines.Returned{Raw: answer, Result: found}, nil
}

// committed asks for the offsets of the group; the consumer's own call does not ask the broker.
func (d *data) committed(call lines.Call) (lines.Returned, error) {
	if d.consumer == nil {
		return lines.Returned{}, lines.Unsupported("the subscription was not possible")
	}
	var given lines.ConsumerOptions
	if err := json.Unmarshal(d.connect.Consumer, &given); err != nil {
		return lines.Returned{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.connect.Timeout())
	defer cancel()
	answer, err := lines.Ask(func() (kadm.OffsetResponses, error) {
		return kadm.NewClient(d.consumer).FetchOffsets(ctx, given.Group)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	found := map[string]any{}
	for _, partition := range call.Partitions {
		row, is := answer.Lookup(partition.Topic, partition.Index)
		switch {
		case !is:
			found[partition.String()] = nil
		case row.Err != nil:
			found[partition.String()] = d.describe(row.Err)
		default:
			found[partition.String()] = row.At
		}
	}
	return lines.Returned{Raw: answer, Result: found}, nil
}

func (d *data) closeConsumer(lines.Call) (lines.Returned, error) {
	d.endProcessing()
	if d.consumer != nil {
		_, _ = lines.Ask(func() (any, error) { d.consumer.Close(); return nil, nil })
		d.consumer = nil
	}
	return lines.Returned{}, nil
}

func (d *data) consume(options []kgo.Opt) error {
	if d.consumer != nil {
		d.consumer.Close()
	}
	d.subscribed = nil
	d.assigned = map[lines.Partition]bool{}
	var err error
	d.consumer, err = lines.Ask(func() (*kgo.Client, error) { return kgo.NewClient(options...) })
	return err
}

func readRecord(record *kgo.Record) lines.Record {
	found := lines.Record{
		Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
		Timestamp: lines.Millis(record.Timestamp),
		Key:       lines.Text(record.Key), Value: lines.Text(record.Value),
	}
	for _, each := range record.Headers {
		found.Headers = append(found.Headers, [2]any{each.Key, lines.Text(each.Value)})
	}
	return found
}

func (d *data) poll(call lines.Call) (lines.Returned, error) {
	count, err := call.Count()
	if err != nil {
		return lines.Returned{}, err
	}
	if d.processing != nil {
		return d.processing.poll(count, lines.Milliseconds(call.Ms))
	}
	if d.consumer == nil {
		return lines.Returned{}, lines.Unsupported("the subscription was not possible")
	}
	ctx, cancel := context.WithTimeout(context.Background(), lines.Milliseconds(call.Ms))
	defer cancel()
	found := []lines.Record{}
	var group error
	for len(found) < count && ctx.Err() == nil {
		fetches, _ := lines.Ask(func() (kgo.Fetches, error) { return d.consumer.PollFetches(ctx), nil })
		fetches.EachRecord(func(record *kgo.Record) {
			found = append(found, readRecord(record))
		})
		for _, each := range fetches.Errors() {
			// This one is information: the client joins its group again by itself.
			var session *kgo.ErrGroupSession
			if errors.As(each.Err, &session) {
				group = each.Err
				continue
			}
			// The end of the time to poll is not an error of the client's.
			if !errors.Is(each.Err, context.DeadlineExceeded) || ctx.Err() == nil {
				return lines.Returned{}, lines.Raised{Err: each.Err, Records: found}
			}
		}
	}
	if group != nil && len(found) < count {
		return lines.Returned{}, lines.Raised{Err: group, Records: found}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}
