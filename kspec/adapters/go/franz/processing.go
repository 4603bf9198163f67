package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kspec-adapters/lines"
)

// The transactional id of a session is the application's choice, as its options are.
const processingID = "processing"

var processingOptions = map[string]string{
	"TransactionalID of a GroupTransactSession":     processingID,
	"FetchIsolationLevel of a GroupTransactSession": "ReadCommitted, as exactly-once processing demands",
}

// processing reads, writes and commits in a GroupTransactSession, as its documentation and examples do:
// what a poll returns is written and committed in one transaction. An error ends it.
type processing struct {
	session *kgo.GroupTransactSession
	topic   string
	cancel  context.CancelFunc
	over    chan struct{}

	mutex  sync.Mutex
	read   []lines.Record // that poll has not returned yet
	isBusy bool           // from reading records until their transaction has ended
	noted  error          // which counts if no records come
	failed error
}

func (d *data) process(call lines.Call) (lines.Returned, error) {
	if call.Guarantee != "exactly_once" {
		return lines.Returned{}, lines.Unsupported(
			"only GroupTransactSession commits what it processes, and it does so in transactions")
	}
	ofConsumer, err := d.consumerOptions()
	if err != nil {
		return lines.Returned{}, err
	}
	ofProducer, err := d.producerOptions(true)
	if err != nil {
		return lines.Returned{}, err
	}
	d.endProcessing()
	d.assigned = map[lines.Partition]bool{}
	options := append(append(ofConsumer, ofProducer...),
		kgo.ConsumeTopics(call.From...), kgo.TransactionalID(processingID),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	session, err := lines.Ask(func() (*kgo.GroupTransactSession, error) {
		return kgo.NewGroupTransactSession(options...)
	})
	if err != nil {
		return lines.Returned{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.processing = &processing{session: session, topic: call.To, cancel: cancel, over: make(chan struct{})}
	go d.processing.run(ctx)
	return lines.Returned{}, nil
}

func (p *processing) run(ctx context.Context) {
	defer close(p.over)
	for ctx.Err() == nil {
		fetches := p.session.PollFetches(ctx)
		if err := p.fetchError(fetches); err != nil {
			p.fail(err)
			return
		}
		records := fetches.Records()
		if len(records) == 0 {
			continue
		}
		p.begin(records)
		err := p.transact(ctx, records)
		p.end()
		if err != nil {
			p.fail(err)
			return
		}
	}
}

// fetchError returns the first error of a poll that is not information, and notes one that is: the
// client joins its group again by itself.
func (p *processing) fetchError(fetches kgo.Fetches) error {
	for _, each := range fetches.Errors() {
		var session *kgo.ErrGroupSession
		if !errors.As(each.Err, &session) {
			return each.Err
		}
		p.note(each.Err)
	}
	return nil
}

func (p *processing) note(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.noted = err
}

// transact returns nil if the group rebalanced: the session goes on with what the group committed.
func (p *processing) transact(ctx context.Context, records []*kgo.Record) error {
	if err := p.session.Begin(); err != nil {
		return err
	}
	promise := kgo.AbortingFirstErrPromise(p.session.Client())
	for _, each := range records {
		written := &kgo.Record{Topic: p.topic, Partition: each.Partition, Key: each.Key, Value: each.Value}
		p.session.Produce(ctx, written, promise.Promise())
	}
	failed := promise.Err()
	_, err := p.session.End(ctx, failed == nil)
	if failed != nil {
		return failed
	}
	return err
}

func (p *processing) begin(records []*kgo.Record) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isBusy = true
	for _, each := range records {
		p.read = append(p.read, readRecord(each))
	}
}

func (p *processing) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isBusy = false
}

func (p *processing) fail(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.failed = err
}

// poll returns what was read; the transaction of it may not have ended yet.
func (p *processing) poll(count int, limit time.Duration) (lines.Returned, error) {
	ends := time.Now().Add(limit)
	for {
		p.mutex.Lock()
		found, failed := p.read, p.failed
		if len(found) >= count || failed != nil || time.Now().After(ends) {
			if failed == nil {
				failed = p.noted
			}
			p.read, p.noted = nil, nil
			p.mutex.Unlock()
			if failed != nil && len(found) < count {
				return lines.Returned{}, lines.Raised{Err: failed, Records: found}
			}
			found = append([]lines.Record{}, found...)
			return lines.Returned{Raw: found, Result: found}, nil
		}
		p.mutex.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

// commit waits for the end of the transaction, since the session commits by itself.
func (p *processing) commit() (lines.Returned, error) {
	for {
		p.mutex.Lock()
		isBusy, failed := p.isBusy, p.failed
		p.mutex.Unlock()
		if failed != nil {
			return lines.Returned{}, lines.Raised{Err: failed}
		}
		if !isBusy {
			return lines.Returned{}, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// endProcessing leaves the group.
func (d *data) endProcessing() {
	if d.processing == nil {
		return
	}
	ending := d.processing
	d.processing = nil
	ending.cancel()
	lines.Within(d.connect.Timeout(), func() {
		<-ending.over
		ending.session.Close()
	})
}
