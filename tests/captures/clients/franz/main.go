// Everyday traffic of franz-go: BOOTSTRAP PREFIX. One line of JSON on standard output at the end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const records = 12

var failed = map[string]string{}

func attempt(what string, err error) {
	if err != nil {
		failed[what] = err.Error()
	}
}

func client(more ...kgo.Opt) *kgo.Client {
	all := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.ClientID("franz-go"),
		kgo.ProducerLinger(20 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond),
	}
	made, err := kgo.NewClient(append(all, more...)...)
	if err != nil {
		panic(err)
	}
	return made
}

func produce(ctx context.Context, topic string, more ...kgo.Opt) error {
	made := client(more...)
	defer made.Close()
	var sent []*kgo.Record
	for n := 0; n < records; n++ {
		value := fmt.Sprintf("value %d: %s", n, strings.Repeat("so it goes, ", 12))
		sent = append(sent, &kgo.Record{
			Topic: topic, Key: []byte(fmt.Sprint("key-", n)), Value: []byte(value),
			Headers: []kgo.RecordHeader{{Key: "n", Value: []byte{byte(n)}}},
		})
	}
	return made.ProduceSync(ctx, sent...).FirstErr()
}

func transactions(ctx context.Context, topic string) error {
	made := client(kgo.TransactionalID(topic + "-tx"))
	defer made.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := made.BeginTransaction(); err != nil {
			return err
		}
		record := &kgo.Record{Topic: topic, Value: []byte("in a transaction")}
		if err := made.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
		if err := made.EndTransaction(ctx, end); err != nil {
			return err
		}
	}
	return nil
}

func consume(ctx context.Context, topic string) error {
	made := client(kgo.ConsumerGroup(topic+"-group"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer made.Close()
	for found := 0; found < 5*records; {
		fetches := made.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		found += fetches.NumRecords()
	}
	if err := made.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	return made.LeaveGroupContext(ctx)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	topic := os.Args[2] + "-franz-go"
	admin := kadm.NewClient(client())
	_, err := admin.CreateTopic(ctx, 3, 2, nil, topic)
	attempt("create", err)
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		attempt(name, produce(ctx, topic, kgo.ProducerBatchCompression(codecs[name])))
	}
	attempt("acks 0", produce(ctx, topic, kgo.RequiredAcks(kgo.NoAck()),
		kgo.DisableIdempotentWrite()))
	attempt("transactions", transactions(ctx, topic))
	attempt("consume", consume(ctx, topic))
	_, err = admin.DescribeTopicConfigs(ctx, topic)
	attempt("configs", err)
	_, err = admin.ListEndOffsets(ctx, topic)
	attempt("offsets", err)
	_, err = admin.DescribeGroups(ctx, topic+"-group")
	attempt("group", err)
	_, err = admin.DeleteGroups(ctx, topic+"-group")
	attempt("drop group", err)
	admin.Close()
	line, _ := json.Marshal(map[string]any{"client": "franz-go", "version": "", "failed": failed})
	fmt.Println(string(line))
}
