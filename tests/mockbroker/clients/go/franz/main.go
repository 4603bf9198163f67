// franz-go: every codec, a group that grows and shrinks, offsets by time.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"mockbroker-clients/checks"
)

var ctx = context.Background()

type reader struct {
	client   *kgo.Client
	bag      checks.Bag
	mutex    sync.Mutex
	assigned map[int32]bool
	stop     context.CancelFunc
	ended    chan struct{}
}

func newReader(bootstrap string) *reader {
	r := &reader{assigned: map[int32]bool{}, ended: make(chan struct{})}
	gone := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for _, each := range lost[checks.Topic] {
			delete(r.assigned, each)
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics(checks.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			for _, each := range got[checks.Topic] {
				r.assigned[each] = true
			}
		}),
		kgo.OnPartitionsRevoked(gone), kgo.OnPartitionsLost(gone))
	checks.Must(err)
	r.client = client
	polling, stop := context.WithCancel(ctx)
	r.stop = stop
	go func() {
		defer close(r.ended)
		for polling.Err() == nil {
			fetches := client.PollFetches(polling)
			if fetches.NumRecords() == 0 {
				continue
			}
			checks.Must(client.CommitRecords(ctx, fetches.Records()...))
			fetches.EachRecord(func(record *kgo.Record) { r.bag.Add(string(record.Value)) })
		}
	}()
	return r
}

func (r *reader) partitions() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.assigned)
}

func (r *reader) close() {
	r.stop()
	<-r.ended
	r.client.Close()
}

func produce(bootstrap, name string, codec kgo.CompressionCodec) []string {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	checks.Must(err)
	defer client.Close()
	values := checks.Values(name)
	records := make([]*kgo.Record, 0, len(values))
	for i, value := range values {
		records = append(records, &kgo.Record{
			Topic: checks.Topic, Partition: int32(i % checks.Partitions), Value: []byte(value),
			Timestamp: checks.Base.Add(time.Duration(i) * time.Millisecond)})
	}
	checks.Must(client.ProduceSync(ctx, records...).FirstErr())
	return values
}

func main() {
	bootstrap := os.Args[1]
	var sent []string
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(),
		kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i, codec := range codecs {
		sent = append(sent, produce(bootstrap, fmt.Sprint("codec", i), codec)...)
	}
	first := newReader(bootstrap)
	checks.Until("read everything", func() bool { return first.bag.Len() >= len(sent) })
	checks.Equal("what was read", first.bag.Sorted(), checks.Sorted(sent))
	second := newReader(bootstrap)
	checks.Until("share", func() bool { return first.partitions() == 2 && second.partitions() == 2 })
	second.close()
	checks.Until("take over", func() bool { return first.partitions() == checks.Partitions })
	first.close()
	late := produce(bootstrap, "late", kgo.NoCompression())
	third := newReader(bootstrap)
	checks.Until("read on", func() bool { return third.bag.Len() >= len(late) })
	checks.Equal("what came later", third.bag.Sorted(), checks.Sorted(late))
	third.close()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	checks.Must(err)
	defer client.Close()
	found, err := kadm.NewClient(client).ListOffsetsAfterMilli(
		ctx, checks.Base.UnixMilli()+checks.Partitions, checks.Topic)
	checks.Must(err)
	for partition := int32(0); partition < checks.Partitions; partition++ {
		offset, ok := found.Lookup(checks.Topic, partition)
		checks.Equal("found", ok && offset.Err == nil, true)
		checks.Equal("offset by time", offset.Offset, 1)
	}
	fmt.Println("ok", len(sent))
}
