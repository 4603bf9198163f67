// The situations of ../situations.txt with franz-go.
package situations

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	kproto "github.com/kproto/kproto/clients/go"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, mock *kproto.Mock, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	made, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(mock.Seeds()...),
		// Tests need not wait as long for new metadata as services should.
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func produce(t *testing.T, c *kgo.Client, value string) error {
	t.Helper()
	return c.ProduceSync(within(t), &kgo.Record{Topic: "foo", Value: []byte(value)}).FirstErr()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func consume(t *testing.T, c *kgo.Client, count int) []string {
	t.Helper()
	var values []string
	ctx := within(t)
	for len(values) < count {
		fetches := c.PollFetches(ctx)
		must(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func equal(t *testing.T, got, expected any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		t.Fatalf("%v, not %v", got, expected)
	}
}

func TestHappyPath(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3))
	must(t, produce(t, client(t, mock), "a"))
	equal(t, consume(t, client(t, mock, kgo.ConsumeTopics("foo")), 1), []string{"a"})
	equal(t, mock.Records("foo-0")[0].Value, "a")
}

func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3), kproto.FaultsMustHit())
	mock.Fault(kproto.Fault{API: "Produce", Disconnect: "after", Times: 1})
	must(t, produce(t, client(t, mock), "a"))
	equal(t, len(mock.Requests("Produce")), 2)
	equal(t, len(mock.Records("foo-0")), 1)
}

func TestFencedProducer(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3), kproto.Topic("__transaction_state", 1, 3))
	first := client(t, mock, kgo.TransactionalID("t"))
	must(t, first.BeginTransaction())
	must(t, produce(t, first, "a"))
	second := client(t, mock, kgo.TransactionalID("t"))
	must(t, second.BeginTransaction())
	must(t, produce(t, second, "b"))
	err := first.EndTransaction(within(t), kgo.TryCommit)
	if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Fatalf("the first producer got %v", err)
	}
	must(t, second.EndTransaction(within(t), kgo.TryCommit))
	if records := mock.CommittedRecords("foo-0"); len(records) != 1 || records[0].Value != "b" {
		t.Fatalf("committed: %v", records)
	}
}

func TestRebalanceInMidBatch(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3))
	producer := client(t, mock)
	must(t, produce(t, producer, "a"))
	consumer := client(t, mock, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("foo"))
	equal(t, consume(t, consumer, 1), []string{"a"})
	before := mock.WaitForGroup("g", "Stable", 1)
	mock.Rebalance("g")
	mock.WaitForCount(within(t), 2, "SyncGroup")
	must(t, produce(t, producer, "b"))
	equal(t, consume(t, consumer, 1), []string{"b"})
	must(t, consumer.CommitUncommittedOffsets(within(t)))
	equal(t, mock.Committed("g")["foo-0"].Offset, 2)
	if after := mock.Groups()["g"]; after.Generation <= before.Generation {
		t.Fatalf("generation %d after %d", after.Generation, before.Generation)
	}
}

func TestLeaderChange(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3))
	producer := client(t, mock)
	must(t, produce(t, producer, "a"))
	leader := mock.State().Topics["foo"]["0"].Leader
	mock.StopBroker(leader)
	must(t, produce(t, producer, "b"))
	if now := mock.State().Topics["foo"]["0"].Leader; now == leader {
		t.Fatalf("the leader is still %d", now)
	}
	equal(t, len(mock.Records("foo-0")), 2)
}

func TestCoordinatorMove(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3))
	must(t, produce(t, client(t, mock), "a"))
	consumer := client(t, mock, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("foo"))
	consume(t, consumer, 1)
	first := mock.Requests("JoinGroup")[0].BrokerID
	to := first%3 + 1
	mock.MoveCoordinator("group", "g", to)
	must(t, consumer.CommitUncommittedOffsets(within(t)))
	mock.WaitFor(within(t), "OffsetCommit", "broker", fmt.Sprint(to))
	equal(t, mock.Committed("g")["foo-0"].Offset, 1)
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3), kproto.FaultsMustHit())
	mock.Fault(kproto.Fault{API: "Produce", Throttle: "200ms", Times: 1})
	producer := client(t, mock)
	must(t, produce(t, producer, "a"))
	must(t, produce(t, producer, "b"))
	sent := mock.Requests("Produce")
	if waited := sent[1].TimestampNs - sent[0].TimestampNs; waited < int(150*time.Millisecond) {
		t.Fatalf("the second request followed after %v", time.Duration(waited))
	}
}

func TestUnsupportedVersion(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3), kproto.Apis(map[string]string{"45": "off"}))
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign("foo", 0, []int32{2, 3, 1})
	_, err := kadm.NewClient(client(t, mock)).AlterPartitionAssignments(within(t), request)
	if err == nil {
		t.Fatal("a broker without the API was asked")
	}
	equal(t, len(mock.Journal("direction", "request", "api", "45")), 0)
}

func TestOldRelease(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Profile("kafka-0.11.0"), kproto.Topic("foo", 1, 3))
	must(t, produce(t, client(t, mock), "a"))
	equal(t, consume(t, client(t, mock, kgo.ConsumeTopics("foo")), 1), []string{"a"})
	equal(t, mock.Requests("Produce")[0].APIVersion, 3)
}

func TestReassignmentWatched(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Brokers(4), kproto.TopicText("foo=1,2,3"), kproto.FaultsMustHit())
	mock.Fault(kproto.Fault{API: "AlterPartitionReassignments", Error: "NOT_CONTROLLER", Times: 1})
	admin := kadm.NewClient(client(t, mock))
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign("foo", 0, []int32{2, 3, 4})
	answer, err := admin.AlterPartitionAssignments(within(t), request)
	must(t, err)
	must(t, answer.Error())
	equal(t, mock.State().Topics["foo"]["0"].Adding, []int{4})
	mock.JoinISR("foo-0", 4)
	equal(t, mock.State().Topics["foo"]["0"].Replicas, []int{2, 3, 4})
	equal(t, len(mock.Requests("AlterPartitionReassignments")), 2)
}

func TestPoisonRecord(t *testing.T) {
	t.Parallel()
	mock := kproto.Start(t, kproto.Topic("foo", 1, 3))
	must(t, produce(t, client(t, mock), "poison"))
	mock.CorruptBatch("foo-0", 0, "crc")
	mock.Append("foo-0", kproto.NewRecords{Records: []kproto.NewRecord{{Value: "good"}}})
	consumer := client(t, mock, kgo.ConsumeTopics("foo"))
	fetches := consumer.PollFetches(within(t))
	if fetches.Err() == nil {
		t.Fatalf("the damaged batch was accepted: %v", fetches.Records())
	}
	past := map[string]map[int32]kgo.Offset{"foo": {0: kgo.NewOffset().At(1)}}
	equal(t, consume(t, client(t, mock, kgo.ConsumePartitions(past)), 1), []string{"good"})
}

func TestFiftyInParallel(t *testing.T) {
	for number := range 50 {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			mock := kproto.Start(t, kproto.Topic("foo", 1, 3))
			must(t, produce(t, client(t, mock), "a"))
			equal(t, len(mock.Records("foo-0")), 1)
		})
	}
}
