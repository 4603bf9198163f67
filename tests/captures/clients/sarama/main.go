// Everyday traffic of sarama: BOOTSTRAP PREFIX. One line of JSON on standard output at the end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const records = 12

var failed = map[string]string{}

func attempt(what string, err error) {
	if err != nil {
		failed[what] = err.Error()
	}
}

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = "sarama"
	made.Version = sarama.MaxVersion
	made.Producer.Return.Successes = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Flush.Frequency = 20 * time.Millisecond
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.MaxWaitTime = 100 * time.Millisecond
	return made
}

func produce(brokers []string, topic string, codec sarama.CompressionCodec) error {
	made := config()
	made.Producer.Compression = codec
	producer, err := sarama.NewSyncProducer(brokers, made)
	if err != nil {
		return err
	}
	defer producer.Close()
	var sent []*sarama.ProducerMessage
	for n := 0; n < records; n++ {
		value := fmt.Sprintf("value %d: %s", n, strings.Repeat("so it goes, ", 12))
		sent = append(sent, &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("key-", n)),
			Value: sarama.StringEncoder(value),
		})
	}
	return producer.SendMessages(sent)
}

func transactions(brokers []string, topic string) error {
	made := config()
	made.Producer.Idempotent = true
	made.Producer.Transaction.ID = topic + "-tx"
	made.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(brokers, made)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, end := range []func() error{producer.CommitTxn, producer.AbortTxn} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		message := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("in one")}
		if _, _, err := producer.SendMessage(message); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

type reader struct {
	found int
	done  context.CancelFunc
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for message := range c.Messages() {
		s.MarkMessage(message, "")
		if r.found++; r.found == records {
			r.done()
		}
	}
	return nil
}

func consume(brokers []string, topic string) error {
	group, err := sarama.NewConsumerGroup(brokers, topic+"-group", config())
	if err != nil {
		return err
	}
	defer group.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return group.Consume(ctx, []string{topic}, &reader{done: cancel})
}

func main() {
	brokers, topic := strings.Split(os.Args[1], ","), os.Args[2]+"-sarama"
	admin, err := sarama.NewClusterAdmin(brokers, config())
	if err != nil {
		panic(err)
	}
	attempt("create", admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 2}, false))
	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP,
		sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD}
	for _, codec := range codecs {
		attempt(codec.String(), produce(brokers, topic, codec))
	}
	attempt("transactions", transactions(brokers, topic))
	attempt("consume", consume(brokers, topic))
	_, err = admin.ListConsumerGroups()
	attempt("groups", err)
	_, err = admin.DescribeConsumerGroups([]string{topic + "-group"})
	attempt("group", err)
	_, err = admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	attempt("configs", err)
	_, err = admin.DescribeLogDirs([]int32{1})
	attempt("log dirs", err)
	admin.Close()
	line, _ := json.Marshal(map[string]any{"client": "sarama", "version": "", "failed": failed})
	fmt.Println(string(line))
}
