// sarama: every codec, a group that grows and shrinks, offsets by time.
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"mockbroker-clients/checks"
)

type reader struct {
	group    sarama.ConsumerGroup
	bag      checks.Bag
	assigned atomic.Int32
	stop     context.CancelFunc
	ended    chan struct{}
}

func (r *reader) Setup(session sarama.ConsumerGroupSession) error {
	r.assigned.Store(int32(len(session.Claims()[checks.Topic])))
	return nil
}

func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
			session.Commit()
			r.bag.Add(string(message.Value))
		case <-session.Context().Done():
			return nil
		}
	}
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	return config
}

func newReader(bootstrap []string) *reader {
	group, err := sarama.NewConsumerGroup(bootstrap, "readers", settings())
	checks.Must(err)
	polling, stop := context.WithCancel(context.Background())
	r := &reader{group: group, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for polling.Err() == nil {
			checks.Must(group.Consume(polling, []string{checks.Topic}, r))
		}
	}()
	return r
}

func (r *reader) close() {
	r.stop()
	<-r.ended
	checks.Must(r.group.Close())
}

func produce(bootstrap []string, name string, codec sarama.CompressionCodec) []string {
	config := settings()
	config.Producer.Compression = codec
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(bootstrap, config)
	checks.Must(err)
	values := checks.Values(name)
	messages := make([]*sarama.ProducerMessage, 0, len(values))
	for i, value := range values {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: checks.Topic, Partition: int32(i % checks.Partitions),
			Value:     sarama.StringEncoder(value),
			Timestamp: checks.Base.Add(time.Duration(i) * time.Millisecond)})
	}
	checks.Must(producer.SendMessages(messages))
	checks.Must(producer.Close())
	return values
}

func main() {
	bootstrap := []string{os.Args[1]}
	var sent []string
	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP,
		sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD}
	for _, codec := range codecs {
		sent = append(sent, produce(bootstrap, codec.String(), codec)...)
	}
	first := newReader(bootstrap)
	checks.Until("read everything", func() bool { return first.bag.Len() >= len(sent) })
	checks.Equal("what was read", first.bag.Sorted(), checks.Sorted(sent))
	second := newReader(bootstrap)
	checks.Until("share", func() bool { return first.assigned.Load() == 2 && second.assigned.Load() == 2 })
	second.close()
	checks.Until("take over", func() bool { return first.assigned.Load() == checks.Partitions })
	first.close()
	late := produce(bootstrap, "late", sarama.CompressionNone)
	third := newReader(bootstrap)
	checks.Until("read on", func() bool { return third.bag.Len() >= len(late) })
	checks.Equal("what came later", third.bag.Sorted(), checks.Sorted(late))
	third.close()
	client, err := sarama.NewClient(bootstrap, settings())
	checks.Must(err)
	for partition := int32(0); partition < checks.Partitions; partition++ {
		offset, err := client.GetOffset(
			checks.Topic, partition, checks.Base.UnixMilli()+checks.Partitions)
		checks.Must(err)
		checks.Equal("offset by time", offset, 1)
	}
	checks.Must(client.Close())
	fmt.Println("ok", len(sent))
}
