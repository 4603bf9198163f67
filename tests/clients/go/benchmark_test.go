package situations

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	kproto "github.com/kproto/kproto/clients/go"
)

// One round is fifty tests, as many at a time as there are processors: a cluster of three brokers, a
// produced record, the end of the cluster. Beside it, kfake in this process:
//
//	go test -run '^$' -bench Fifty -benchtime 5x
func BenchmarkFiftyTests(b *testing.B) {
	b.Run("mock", func(b *testing.B) {
		kproto.Start(b) // the server, which a test binary starts once
		rounds(b, func() {
			t := &scope{TB: b}
			defer t.end()
			produceTo(b, kproto.Start(t, kproto.Topic("foo", 1, 3)).Seeds())
		})
	})
	b.Run("kfake", func(b *testing.B) {
		rounds(b, func() {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, "foo"))
			if err != nil {
				b.Error(err)
				return
			}
			defer cluster.Close()
			produceTo(b, cluster.ListenAddrs())
		})
	})
}

func rounds(b *testing.B, test func()) {
	for b.Loop() {
		var all sync.WaitGroup
		free := make(chan struct{}, runtime.GOMAXPROCS(0))
		for range 50 {
			free <- struct{}{}
			all.Go(func() {
				test()
				<-free
			})
		}
		all.Wait()
	}
}

func produceTo(b *testing.B, seeds []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	if err != nil {
		b.Error(err)
		return
	}
	defer client.Close()
	if err := client.ProduceSync(context.Background(), &kgo.Record{Topic: "foo", Value: []byte("a")}).FirstErr(); err != nil {
		b.Error(err)
	}
}

// A scope ends within a round what a test ends at its own end.
type scope struct {
	testing.TB
	ends []func()
}

func (s *scope) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *scope) end() {
	for _, each := range s.ends {
		each()
	}
}
