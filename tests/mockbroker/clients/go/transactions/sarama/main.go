// sarama: commands for transactions.
package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"mockbroker-clients/checks"
)

// producer has a consumer of a group, too, if it moves records.
type producer struct {
	sync     sarama.SyncProducer
	group    sarama.ConsumerGroup
	id       string
	source   string
	consumed chan *sarama.ConsumerMessage
	metadata *sarama.ConsumerGroupMetadata
	stop     context.CancelFunc
	ended    chan error
}

func (p *producer) Setup(session sarama.ConsumerGroupSession) error {
	p.metadata = &sarama.ConsumerGroupMetadata{
		GroupID: p.id, MemberID: session.MemberID(), GenerationID: session.GenerationID()}
	return nil
}

func (p *producer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (p *producer) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			p.consumed <- message
		case <-session.Context().Done():
			return nil
		}
	}
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	return config
}

func open(bootstrap []string, words []string) (*producer, error) {
	timeout, err := strconv.Atoi(words[2])
	checks.Must(err)
	config := settings()
	config.Producer.Transaction.ID = words[1]
	config.Producer.Transaction.Timeout = time.Duration(timeout) * time.Millisecond
	made, err := sarama.NewSyncProducer(bootstrap, config)
	if err != nil || len(words) == 3 {
		return &producer{sync: made}, err
	}
	group, err := sarama.NewConsumerGroup(bootstrap, words[3], settings())
	if err != nil {
		return nil, err
	}
	polling, stop := context.WithCancel(context.Background())
	p := &producer{sync: made, group: group, id: words[3], source: words[4], stop: stop,
		consumed: make(chan *sarama.ConsumerMessage), ended: make(chan error, 1)}
	go func() { p.ended <- group.Consume(polling, []string{words[4]}, p) }()
	return p, nil
}

func (p *producer) send(topic string, values []string) error {
	messages := make([]*sarama.ProducerMessage, 0, len(values))
	for _, value := range values {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Partition: 0, Value: sarama.StringEncoder(value)})
	}
	return p.sync.SendMessages(messages)
}

func (p *producer) move(target, last string) error {
	var moved []string
	for len(moved) == 0 || moved[len(moved)-1] != last {
		message := <-p.consumed
		moved = append(moved, string(message.Value))
		if err := p.sync.AddMessageToTxnWithGroupMetadata(message, p.metadata, nil); err != nil {
			return err
		}
	}
	return p.send(target, moved)
}

func (p *producer) close() error {
	p.stop()
	if err := <-p.ended; err != nil {
		return err
	}
	if err := p.group.Close(); err != nil {
		return err
	}
	return p.sync.Close()
}

func read(bootstrap []string, topic, level, last string) (found []string, err error) {
	config := settings()
	if strings.HasSuffix(level, "_uncommitted") {
		config.Consumer.IsolationLevel = sarama.ReadUncommitted
	}
	consumer, err := sarama.NewConsumer(bootstrap, config)
	if err != nil {
		return nil, err
	}
	part, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	for len(found) == 0 || found[len(found)-1] != last {
		found = append(found, string((<-part.Messages()).Value))
	}
	if err := part.Close(); err != nil {
		return nil, err
	}
	return found, consumer.Close()
}

func main() {
	var bootstrap []string
	producers := map[string]*producer{}
	checks.Commands{
		"connect": func(words []string) ([]string, error) {
			bootstrap = strings.Split(words[0], ",")
			return nil, nil
		},
		"open": func(words []string) (_ []string, err error) {
			producers[words[0]], err = open(bootstrap, words)
			return nil, err
		},
		"begin": func(words []string) ([]string, error) {
			return nil, producers[words[0]].sync.BeginTxn()
		},
		"send": func(words []string) ([]string, error) {
			return nil, producers[words[0]].send(words[1], words[2:])
		},
		"move": func(words []string) ([]string, error) {
			return nil, producers[words[0]].move(words[1], words[2])
		},
		"commit": func(words []string) ([]string, error) {
			return nil, producers[words[0]].sync.CommitTxn()
		},
		"abort": func(words []string) ([]string, error) {
			return nil, producers[words[0]].sync.AbortTxn()
		},
		"close": func(words []string) ([]string, error) {
			return nil, producers[words[0]].close()
		},
		"read": func(words []string) ([]string, error) {
			return read(bootstrap, words[0], words[1], words[2])
		},
	}.Serve()
}
