package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kspec-adapters/lines"
)

// dataOptions differ from the defaults.
var dataOptions = map[string]string{
	"ProduceRequestTimeout":                 "timeout_ms",
	"RecordPartitioner":                     "ManualPartitioner, for records with a partition",
	"DisableAutoCommit of a group's client": "true",
}

// data is a producer and a consumer, each made by its first call.
type data struct {
	common   []kgo.Opt
	connect  lines.Call
	describe func(error) any
	producer *kgo.Client
	consumer *kgo.Client
	reset    *kgo.Offset
}

func (d *data) operations() map[string]lines.Operation {
	return map[string]lines.Operation{
		"produce": d.produce, "assign": d.assign, "subscribe": d.subscribe, "poll": d.poll,
	}
}

func (d *data) close() {
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
	var given lines.ProducerOptions
	err := lines.Options(d.connect.Producer, &given, "acks", "idempotence", "compression",
		"linger_ms", "batch_bytes", "max_in_flight", "delivery_timeout_ms")
	if err != nil {
		return nil, err
	}
	options := append([]kgo.Opt{kgo.ProduceRequestTimeout(d.connect.Timeout())}, d.common...)
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
		options = append(options, kgo.ProducerLinger(milliseconds(*given.LingerMs)))
	}
	if given.BatchBytes != nil {
		options = append(options, kgo.ProducerBatchMaxBytes(*given.BatchBytes))
	}
	if given.MaxInFlight != nil {
		options = append(options, kgo.MaxProduceRequestsInflightPerBroker(*given.MaxInFlight))
	}
	if given.DeliveryTimeoutMs > 0 {
		options = append(options, kgo.RecordDeliveryTimeout(milliseconds(given.DeliveryTimeoutMs)))
	}
	d.producer, err = lines.Ask(func() (*kgo.Client, error) { return kgo.NewClient(options...) })
	return d.producer, err
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
	found := make([]any, len(records))
	var group sync.WaitGroup
	for number, each := range records {
		record := &kgo.Record{
			Topic: each.Topic, Key: lines.Bytes(each.Key), Value: lines.Bytes(each.Value),
		}
		if each.Partition != nil {
			record.Partition = *each.Partition
		}
		group.Add(1)
		client.Produce(context.Background(), record, func(record *kgo.Record, err error) {
			defer group.Done()
			if err != nil {
				found[number] = d.describe(err)
				return
			}
			found[number] = lines.Place{
				Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
			}
		})
	}
	group.Wait()
	return lines.Returned{Raw: found, Result: found}, nil
}

// consumerOptions returns those that the case chose, and keeps where to start without an offset.
func (d *data) consumerOptions() ([]kgo.Opt, error) {
	var given lines.ConsumerOptions
	err := lines.Options(d.connect.Consumer, &given, "group", "offset_reset", "isolation",
		"max_wait_ms", "partition_max_bytes", "rack")
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
		options = append(options, kgo.FetchMaxWait(milliseconds(given.MaxWaitMs)))
	}
	if given.PartitionMaxBytes != nil {
		options = append(options, kgo.FetchMaxPartitionBytes(*given.PartitionMaxBytes))
	}
	if given.Rack != "" {
		options = append(options, kgo.Rack(given.Rack))
	}
	if given.Group != "" {
		options = append(options, kgo.ConsumerGroup(given.Group), kgo.DisableAutoCommit())
	}
	return options, nil
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

func (d *data) subscribe(call lines.Call) (lines.Returned, error) {
	names, err := call.Names()
	if err != nil {
		return lines.Returned{}, err
	}
	options, err := d.consumerOptions()
	if err != nil {
		return lines.Returned{}, err
	}
	return lines.Returned{}, d.consume(append(options, kgo.ConsumeTopics(names...)))
}

func (d *data) consume(options []kgo.Opt) error {
	if d.consumer != nil {
		d.consumer.Close()
	}
	var err error
	d.consumer, err = lines.Ask(func() (*kgo.Client, error) { return kgo.NewClient(options...) })
	return err
}

func (d *data) poll(call lines.Call) (lines.Returned, error) {
	count, err := call.Count()
	if err != nil {
		return lines.Returned{}, err
	}
	if d.consumer == nil {
		return lines.Returned{}, errors.New("nothing is assigned or subscribed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), milliseconds(call.Ms))
	defer cancel()
	found := []lines.Record{}
	for len(found) < count && ctx.Err() == nil {
		fetches, _ := lines.Ask(func() (kgo.Fetches, error) { return d.consumer.PollFetches(ctx), nil })
		fetches.EachRecord(func(record *kgo.Record) {
			found = append(found, lines.Record{
				Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
				Key: lines.Text(record.Key), Value: lines.Text(record.Value),
			})
		})
		for _, each := range fetches.Errors() {
			// The end of the time to poll is no error of the client's.
			if !errors.Is(each.Err, context.DeadlineExceeded) || ctx.Err() == nil {
				return lines.Returned{}, lines.Raised{Err: each.Err, Records: found}
			}
		}
	}
	return lines.Returned{Raw: found, Result: found}, nil
}

func milliseconds(number int) time.Duration { return time.Duration(number) * time.Millisecond }
