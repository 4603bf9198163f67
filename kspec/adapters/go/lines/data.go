package lines

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// longestOutcome is less than the 15 seconds after which the suite ends an adapter.
const longestOutcome = 13 * time.Second

// OutcomeTime returns how long produce waits for its records' outcomes, by what connect said.
func (c Call) OutcomeTime() time.Duration {
	var given ProducerOptions
	_ = json.Unmarshal(c.Producer, &given)
	return min(Milliseconds(given.DeliveryTimeoutMs)+c.Timeout()+4*time.Second, longestOutcome)
}

// NewRecord is a record to be produced. Without a partition the client chooses one.
type NewRecord struct {
	Topic     string  `json:"topic"`
	Partition *int32  `json:"partition"`
	Key       *string `json:"key"`
	Value     *string `json:"value"`
	// Headers are pairs of a name and a value, which may be null.
	Headers [][2]*string `json:"headers"`
}

// Record is a record that a consumer returned.
type Record struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"`
	Key       any    `json:"key"`
	Value     any    `json:"value"`
	// Headers are pairs of a name and a value as Text returns it.
	Headers [][2]any `json:"headers,omitempty"`
}

// Place is the outcome of a record that was written.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// pending is the outcome of a record that the client gave none in time.
type pending struct {
	Failure
	Pending bool `json:"pending"`
}

// Outcomes are those of the records of produce, in the order of the records.
type Outcomes struct {
	mutex sync.Mutex
	found []any
	left  int
	whole chan struct{}
	limit time.Duration
	over  <-chan time.Time
}

// NewOutcomes returns outcomes for that many records, to be given within a limit from now on.
func NewOutcomes(count int, limit time.Duration) *Outcomes {
	outcomes := &Outcomes{
		found: make([]any, count), left: count, whole: make(chan struct{}),
		limit: limit, over: time.After(limit),
	}
	if count == 0 {
		close(outcomes.whole)
	}
	return outcomes
}

// Set keeps a record's first outcome.
func (o *Outcomes) Set(number int, outcome any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.found[number] != nil {
		return
	}
	o.found[number] = outcome
	o.left--
	if o.left == 0 {
		close(o.whole)
	}
}

// Wait returns every outcome. Those that are missing after the limit are pending.
func (o *Outcomes) Wait() []any {
	select {
	case <-o.whole:
	case <-o.over:
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	found := slices.Clone(o.found)
	for number, outcome := range found {
		if outcome == nil {
			message := fmt.Sprintf("no outcome in %s", o.limit)
			found[number] = pending{Failure{Name: "pending", Message: message}, true}
		}
	}
	return found
}

// NewRecords returns the records to be produced.
func (c Call) NewRecords() (records []NewRecord, err error) {
	err = json.Unmarshal(c.Records, &records)
	return records, err
}

// Count returns the number of records to wait for.
func (c Call) Count() (count int, err error) {
	err = json.Unmarshal(c.Records, &count)
	return count, err
}

// ProducerOptions are the options of a producer; nil is the client's default.
type ProducerOptions struct {
	Acks              any    `json:"acks"`
	Idempotence       *bool  `json:"idempotence"`
	Compression       string `json:"compression"`
	LingerMs          *int   `json:"linger_ms"`
	BatchBytes        *int32 `json:"batch_bytes"`
	MaxInFlight       *int   `json:"max_in_flight"`
	MetadataAgeMs     *int   `json:"metadata_age_ms"`
	DeliveryTimeoutMs int    `json:"delivery_timeout_ms"`

	TransactionalID      string `json:"transactional_id"`
	TransactionTimeoutMs *int   `json:"transaction_timeout_ms"`
}

// ConsumerOptions are the options of a consumer; nil and "" are the client's default.
type ConsumerOptions struct {
	Group             string `json:"group"`
	OffsetReset       string `json:"offset_reset"`
	Isolation         string `json:"isolation"`
	MaxWaitMs         int    `json:"max_wait_ms"`
	PartitionMaxBytes *int32 `json:"partition_max_bytes"`
	Rack              string `json:"rack"`
	Protocol          string `json:"protocol"`
	InstanceID        string `json:"instance_id"`
	SessionTimeoutMs  *int   `json:"session_timeout_ms"`
	HeartbeatMs       *int   `json:"heartbeat_ms"`
	MetadataAgeMs     *int   `json:"metadata_age_ms"`
	AutoCommitMs      *int   `json:"auto_commit_ms"`

	Assignors      []string `json:"assignors"`
	RemoteAssignor string   `json:"remote_assignor"`
}

// Options parses options. One that has no field makes the call unsupported.
func Options(raw json.RawMessage, options any, names ...string) error {
	given := map[string]json.RawMessage{}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	for name := range given {
		if !slices.Contains(names, name) {
			return Unsupported("the client has no option for " + name)
		}
	}
	return json.Unmarshal(raw, options)
}

// Bytes returns nil for nil.
func Bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// Text returns a key or a value as text, or its bytes in hex if it is not UTF-8.
func Text(data []byte) any {
	if data == nil {
		return nil
	}
	if !utf8.Valid(data) {
		return map[string]string{"hex": hex.EncodeToString(data)}
	}
	return string(data)
}

// AcksNumber returns -1, 0 or 1.
func (o ProducerOptions) AcksNumber() (int, error) {
	switch acks := o.Acks.(type) {
	case string:
		return -1, nil
	case float64:
		return int(acks), nil
	default:
		return 0, fmt.Errorf("%v is not a number of acks", acks)
	}
}

// Millis returns a record's timestamp in the protocol's unit. A client has the zero time for a record without one.
func Millis(timestamp time.Time) int64 {
	if timestamp.IsZero() {
		return -1
	}
	return timestamp.UnixMilli()
}

// Milliseconds returns a number of them as a duration.
func Milliseconds(number int) time.Duration { return time.Duration(number) * time.Millisecond }

// Within leaves work that takes longer, such as closing a client that hangs, to itself.
func Within(limit time.Duration, work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// Keys returns partitions as texts, ascending.
func Keys(partitions []Partition) []string {
	slices.SortFunc(partitions, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Index, b.Index))
	})
	names := []string{}
	for _, each := range partitions {
		names = append(names, each.String())
	}
	return names
}
