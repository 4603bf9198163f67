// franz-go: commands for transactions.
package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"mockbroker-clients/checks"
)

var ctx = context.Background()

// producer is a client with a transactional id; one that moves records has a session.
type producer struct {
	client  *kgo.Client
	session *kgo.GroupTransactSession
}

func (p producer) end(commit kgo.TransactionEndTry) error {
	if p.session != nil {
		_, err := p.session.End(ctx, commit)
		return err
	}
	return p.client.EndTransaction(ctx, commit)
}

func options(bootstrap string, words []string) []kgo.Opt {
	timeout, err := strconv.Atoi(words[2])
	checks.Must(err)
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.TransactionalID(words[1]),
		kgo.TransactionTimeout(time.Duration(timeout) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if len(words) > 3 {
		options = append(options, kgo.ConsumerGroup(words[3]), kgo.ConsumeTopics(words[4]),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	return options
}

func open(bootstrap string, words []string) (p producer, err error) {
	if len(words) > 3 {
		if p.session, err = kgo.NewGroupTransactSession(options(bootstrap, words)...); err != nil {
			return p, err
		}
		p.client = p.session.Client()
	} else if p.client, err = kgo.NewClient(options(bootstrap, words)...); err != nil {
		return p, err
	}
	_, _, err = p.client.ProducerID(ctx)
	return p, err
}

func send(client *kgo.Client, topic string, values []string) error {
	records := make([]*kgo.Record, 0, len(values))
	for _, value := range values {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(value)})
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

// values up to the last of them.
func values(client *kgo.Client, last string) (found []string, err error) {
	for len(found) == 0 || found[len(found)-1] != last {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { found = append(found, string(record.Value)) })
	}
	return found, nil
}

func read(bootstrap, topic, level, last string) ([]string, error) {
	isolation := kgo.ReadUncommitted()
	if strings.HasSuffix(level, "_committed") {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.FetchIsolationLevel(isolation),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return values(client, last)
}

func main() {
	var bootstrap string
	producers := map[string]producer{}
	checks.Commands{
		"connect": func(words []string) ([]string, error) {
			bootstrap = strings.Split(words[0], ",")[0]
			return nil, nil
		},
		"open": func(words []string) (_ []string, err error) {
			producers[words[0]], err = open(bootstrap, words)
			return nil, err
		},
		"begin": func(words []string) ([]string, error) {
			return nil, producers[words[0]].client.BeginTransaction()
		},
		"send": func(words []string) ([]string, error) {
			return nil, send(producers[words[0]].client, words[1], words[2:])
		},
		"move": func(words []string) ([]string, error) {
			moved, err := values(producers[words[0]].client, words[2])
			if err != nil {
				return nil, err
			}
			return nil, send(producers[words[0]].client, words[1], moved)
		},
		"commit": func(words []string) ([]string, error) {
			return nil, producers[words[0]].end(kgo.TryCommit)
		},
		"abort": func(words []string) ([]string, error) {
			return nil, producers[words[0]].end(kgo.TryAbort)
		},
		"close": func(words []string) ([]string, error) {
			producers[words[0]].client.Close()
			return nil, nil
		},
		"read": func(words []string) ([]string, error) {
			return read(bootstrap, words[0], words[1], words[2])
		},
	}.Serve()
}
