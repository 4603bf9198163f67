// kafka-go: every codec, a group that grows and shrinks, offsets by time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"mockbroker-clients/checks"
)

var ctx = context.Background()

type byNumber struct{ next int }

func (b *byNumber) Balance(_ kafka.Message, partitions ...int) int {
	b.next++
	return partitions[(b.next-1)%len(partitions)]
}

type reader struct {
	reader *kafka.Reader
	bag    checks.Bag
	stop   context.CancelFunc
	ended  chan struct{}
}

func newReader(bootstrap string) *reader {
	made := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, GroupID: "readers", Topic: checks.Topic,
		StartOffset: kafka.FirstOffset, HeartbeatInterval: 200 * time.Millisecond,
		MaxWait: 200 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond})
	polling, stop := context.WithCancel(ctx)
	r := &reader{reader: made, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for {
			message, err := made.FetchMessage(polling)
			if errors.Is(err, context.Canceled) {
				return
			}
			checks.Must(err)
			checks.Must(made.CommitMessages(ctx, message))
			r.bag.Add(string(message.Value))
		}
	}()
	return r
}

func (r *reader) close() {
	r.stop()
	<-r.ended
	checks.Must(r.reader.Close())
}

func produce(bootstrap, name string, codec kafka.Compression) []string {
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: checks.Topic, Balancer: &byNumber{},
		RequiredAcks: kafka.RequireAll, Compression: codec, BatchTimeout: 10 * time.Millisecond}
	values := checks.Values(name)
	messages := make([]kafka.Message, 0, len(values))
	for i, value := range values {
		messages = append(messages, kafka.Message{Value: []byte(value),
			Time: checks.Base.Add(time.Duration(i) * time.Millisecond)})
	}
	checks.Must(writer.WriteMessages(ctx, messages...))
	checks.Must(writer.Close())
	return values
}

// members counts the group's members, and whether it is stable.
func members(client *kafka.Client) int {
	found, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{"readers"}})
	if err != nil || found.Groups[0].GroupState != "Stable" {
		return -1
	}
	return len(found.Groups[0].Members)
}

func main() {
	bootstrap := os.Args[1]
	client := &kafka.Client{Addr: kafka.TCP(bootstrap)}
	var sent []string
	for i, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		sent = append(sent, produce(bootstrap, fmt.Sprint("codec", i), codec)...)
	}
	first := newReader(bootstrap)
	checks.Until("read everything", func() bool { return first.bag.Len() >= len(sent) })
	checks.Equal("what was read", first.bag.Sorted(), checks.Sorted(sent))
	second := newReader(bootstrap)
	checks.Until("share", func() bool { return members(client) == 2 })
	second.close()
	checks.Until("take over", func() bool { return members(client) == 1 })
	first.close()
	late := produce(bootstrap, "late", 0)
	third := newReader(bootstrap)
	checks.Until("read on", func() bool { return third.bag.Len() >= len(late) })
	checks.Equal("what came later", third.bag.Sorted(), checks.Sorted(late))
	third.close()
	at := checks.Base.Add(checks.Partitions * time.Millisecond)
	for partition := 0; partition < checks.Partitions; partition++ {
		conn, err := kafka.DialLeader(ctx, "tcp", bootstrap, checks.Topic, partition)
		checks.Must(err)
		offset, err := conn.ReadOffset(at)
		checks.Must(err)
		checks.Equal("offset by time", offset, 1)
		checks.Must(conn.Close())
	}
	fmt.Println("ok", len(sent))
}
