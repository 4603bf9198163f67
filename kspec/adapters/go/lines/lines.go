// Package lines is the adapter protocol in Go: one JSON object per line in, one answer per line out, as
// documented in docs/reference/adapters.md. An adapter implements the calls and calls its client inside Ask: an
// error or a panic there is the client's, any other is an error of the adapter.
package lines

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Call is one line of input.
type Call struct {
	Op        string `json:"op"`
	Bootstrap string `json:"bootstrap"`
	TimeoutMs int    `json:"timeout_ms"`
	ClientID  string `json:"client_id"`
	SASL      *SASL  `json:"sasl"`
	TLS       *TLS   `json:"tls"`

	// Topics is a list of names, or topics to create by name: see Names and NewTopics.
	Topics json.RawMessage `json:"topics"`
	// Assignments maps "topic-partition" to replicas, null to cancel.
	Assignments map[Partition][]int32 `json:"assignments"`
	// AllowReplicationFactorChange is only present if the case uses the guard of KIP-860.
	AllowReplicationFactorChange *bool `json:"allow_replication_factor_change"`
	// Partitions lists the partitions; nil means all.
	Partitions []Partition `json:"partitions"`
	// Type is the type of an election: "preferred" or "unclean".
	Type string `json:"type"`
	// Pattern is a regular expression to subscribe to in place of topics.
	Pattern string `json:"pattern"`
	// Producer and Consumer are the options of connect: ProducerOptions and ConsumerOptions.
	Producer json.RawMessage `json:"producer"`
	Consumer json.RawMessage `json:"consumer"`
	// Records are those of produce; their number and the time to wait for them is that of poll.
	Records json.RawMessage `json:"records"`
	Ms      int             `json:"ms"`
	// Offsets are where to start, nil for the client's choice, or what to commit.
	Offsets map[Partition]*int64 `json:"offsets"`
	// From, To and Guarantee are those of process.
	From      []string `json:"from"`
	To        string   `json:"to"`
	Guarantee string   `json:"guarantee"`
	AdminArguments

	// Calls are the calls of "together".
	Calls []Call `json:"calls"`
}

// TLS holds the paths of PEM files; Certificate and Key may be "".
type TLS struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// Config reads the files.
func (t TLS) Config() (*tls.Config, error) {
	data, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(data)
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// SASL holds the mechanism and credentials, of OAUTHBEARER the tokens.
type SASL struct {
	Mechanism string   `json:"mechanism"`
	Username  string   `json:"username"`
	Password  string   `json:"password"`
	Tokens    []*Token `json:"tokens"`

	mutex sync.Mutex
}

// Token is one of OAUTHBEARER.
type Token struct {
	Token string `json:"token"`
}

// NextToken returns the next token, or the last one again.
func (s *SASL) NextToken() (string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	next := s.Tokens[0]
	if len(s.Tokens) > 1 {
		s.Tokens = s.Tokens[1:]
	}
	if next == nil {
		return "", errors.New("there is no token")
	}
	return next.Token, nil
}

// NewTopic is one value of create_topics.
type NewTopic struct {
	Partitions        int32 `json:"partitions"`
	ReplicationFactor int16 `json:"replication_factor"`
}

// Servers returns the bootstrap addresses.
func (c Call) Servers() []string { return strings.Split(c.Bootstrap, ",") }

// Timeout returns the client's own timeout.
func (c Call) Timeout() time.Duration { return time.Duration(c.TimeoutMs) * time.Millisecond }

// Guarded returns whether the call forbids a change of the replication factor.
func (c Call) Guarded() bool {
	return c.AllowReplicationFactorChange != nil && !*c.AllowReplicationFactorChange
}

// Names returns the topics to describe.
func (c Call) Names() (names []string, err error) {
	err = json.Unmarshal(c.Topics, &names)
	return names, err
}

// NewTopics returns the topics to create by name, by default with one partition and one replica.
func (c Call) NewTopics() (map[string]NewTopic, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(c.Topics, &raw); err != nil {
		return nil, err
	}
	topics := map[string]NewTopic{}
	for name, text := range raw {
		topic := NewTopic{Partitions: 1, ReplicationFactor: 1}
		if err := json.Unmarshal(text, &topic); err != nil {
			return nil, err
		}
		topics[name] = topic
	}
	return topics, nil
}

// Partition is one topic partition, written "foo-0".
type Partition struct {
	Topic string
	Index int32
}

// UnmarshalText parses "foo-0".
func (p *Partition) UnmarshalText(text []byte) error {
	at := strings.LastIndexByte(string(text), '-')
	if at < 0 {
		return fmt.Errorf("%q is not a partition", text)
	}
	index, err := strconv.ParseInt(string(text[at+1:]), 10, 32)
	p.Topic, p.Index = string(text[:at]), int32(index)
	return err
}

func (p Partition) String() string { return p.Topic + "-" + strconv.Itoa(int(p.Index)) }

// Cluster is the answer to describe_cluster: broker ids ascending.
type Cluster struct {
	Brokers    []int32 `json:"brokers"`
	Controller int32   `json:"controller"`
}

// Reassignment is one value of the answer to list_reassignments, by "topic-partition".
type Reassignment struct {
	Replicas []int32 `json:"replicas"`
	Adding   []int32 `json:"adding"`
	Removing []int32 `json:"removing"`
}

// NewReassignment copies what the client returned: in Go an empty list may be nil, which is null in JSON.
func NewReassignment(replicas, adding, removing []int32) Reassignment {
	none := []int32{} // without capacity, so that each append copies
	return Reassignment{
		Replicas: append(none, replicas...),
		Adding:   append(none, adding...),
		Removing: append(none, removing...),
	}
}

// PartitionState is a partition in the answer to describe_topics, whose key is its number as text.
type PartitionState struct {
	Leader   int32   `json:"leader"`
	Replicas []int32 `json:"replicas"`
	ISR      []int32 `json:"isr"`
}

// Unsupported is returned if the client has no public call for the operation.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Raised is an error that the client returned, and the partitions that it names or the records that
// it returned before, if any.
type Raised struct {
	Err        error
	Partitions map[string]any
	Records    []Record
}

func (r Raised) Error() string { return r.Err.Error() }

// Cause returns the client's error within a Raised.
func Cause(err error) error {
	var raised Raised
	if errors.As(err, &raised) {
		return raised.Err
	}
	return err
}

// clientPanic is a panic of the client.
type clientPanic struct {
	value any
	stack []byte
}

// Ask calls the client and nothing else.
func Ask[T any](work func() (T, error)) (T, error) {
	defer func() {
		if value := recover(); value != nil {
			panic(clientPanic{value, debug.Stack()})
		}
	}()
	result, err := work()
	if err != nil {
		err = Raised{Err: err}
	}
	return result, err
}

// Answer makes a call of the client, and returns what it returned with the equivalent result.
func Answer[T any](work func() (T, error), result func(T) any) (Returned, error) {
	found, err := Ask(work)
	if err != nil {
		return Returned{}, err
	}
	return Returned{Raw: found, Result: result(found)}, nil
}

// Failure is an error in an answer: its type, Kafka's code if it has one, and the errors that it
// wraps.
type Failure struct {
	Name    string     `json:"error"`
	Code    *int16     `json:"code"`
	Message string     `json:"message"`
	Errors  []*Failure `json:"errors,omitempty"`
}

// Describe returns an error as a Failure, or nil. The code is Kafka's if the error is one of the
// protocol's; message is the broker's message, if any.
func (s Server) Describe(err error, message string) *Failure {
	if err == nil {
		return nil
	}
	failure := &Failure{Name: fmt.Sprintf("%T", err), Message: err.Error()}
	if message != "" {
		failure.Message += ": " + message
	}
	if code, is := s.Code(err); is {
		failure.Code = &code
	}
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		if inner := s.Describe(wrapping.Unwrap(), ""); inner != nil {
			failure.Errors = append(failure.Errors, inner)
		}
	case interface{ Unwrap() []error }:
		for _, each := range wrapping.Unwrap() {
			failure.Errors = append(failure.Errors, s.Describe(each, ""))
		}
	}
	return failure
}

// Returned is what the client returned, and the equivalent result.
type Returned struct {
	Raw    any
	Result any
}

// Operation performs one call and returns the answer.
type Operation func(Call) (Returned, error)

// Timed is an operation whose context limits it.
type Timed func(context.Context, Call) (Returned, error)

// WithContext makes operations of timed ones; begin makes the context of each call.
func WithContext(
	begin func() (context.Context, context.CancelFunc), timed map[string]Timed,
) map[string]Operation {
	operations := map[string]Operation{}
	for name, perform := range timed {
		operations[name] = func(call Call) (Returned, error) {
			ctx, cancel := begin()
			defer cancel()
			return perform(ctx, call)
		}
	}
	return operations
}

// Server is an adapter: the client, its operations, and the options that differ from its defaults.
type Server struct {
	Client, Version string
	// Connect names the members of connect that not every adapter takes.
	Connect []string
	// Records names the members of records that not every adapter has.
	Records    []string
	Options    map[string]string
	Operations map[string]Operation
	// Code returns Kafka's code of a client's error; it ignores wrapped errors.
	Code func(error) (int16, bool)
}

// Add adds the operations of what connect makes. made returns it, and nil before there is one.
func Add[T any](s Server, operations func(*T) map[string]Operation, made func() *T) {
	for name := range operations(new(T)) {
		s.Operations[name] = func(call Call) (Returned, error) {
			if made() == nil {
				return Returned{}, errors.New("connect comes first")
			}
			return operations(made())[name](call)
		}
	}
}

// ModuleVersion returns the version of a dependency that this binary was built with.
func ModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == path {
			return dependency.Version
		}
	}
	return "unknown"
}

// Serve writes the greeting, then answers every line of stdin. The operations include "connect" and
// "close".
func (s Server) Serve() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	capabilities := []string{}
	for name := range s.Operations {
		if name != "connect" && name != "close" {
			capabilities = append(capabilities, name)
		}
	}
	slices.Sort(capabilities)
	write(out, map[string]any{
		"client": s.Client, "version": s.Version, "language": "go", "capabilities": capabilities,
		"connect": append([]string{}, s.Connect...), "records": append([]string{}, s.Records...),
		"options": s.Options,
	})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var call Call
		if err := json.Unmarshal(in.Bytes(), &call); err != nil {
			write(out, adapterError(err))
			continue
		}
		write(out, s.answer(call))
	}
	_, _ = s.Operations["close"](Call{})
}

func adapterError(err error) map[string]any {
	return map[string]any{
		"adapter_error": Failure{Name: fmt.Sprintf("%T", err), Message: err.Error()},
	}
}

// A panic of the client ends this process, like any program that calls it.
func (s Server) answer(call Call) (answer map[string]any) {
	defer func() {
		value := recover()
		if panicked, is := value.(clientPanic); is {
			fmt.Fprintf(os.Stderr, "panic: %v\n\n%s", panicked.value, panicked.stack)
			os.Exit(2)
		}
		if value != nil {
			answer = adapterError(fmt.Errorf("panic: %v", value))
		}
	}()
	if call.Op == "together" {
		return map[string]any{"ok": true, "result": s.together(call.Calls)}
	}
	operation, known := s.Operations[call.Op]
	if !known {
		return map[string]any{"unsupported": "no public call for " + call.Op}
	}
	returned, err := operation(call)
	var unsupported Unsupported
	var raised Raised
	switch {
	case err == nil:
		raw := fmt.Sprintf("%+v", returned.Raw)
		return map[string]any{"ok": true, "result": returned.Result, "raw": raw}
	case errors.As(err, &unsupported):
		return map[string]any{"unsupported": string(unsupported)}
	case errors.As(err, &raised):
		failure := s.Describe(raised.Err, "")
		answer := map[string]any{
			"ok": false, "error": failure.Name, "code": failure.Code, "message": failure.Message,
			"errors": failure.Errors,
		}
		if raised.Partitions != nil {
			answer["partitions"] = raised.Partitions
		}
		if len(raised.Records) > 0 {
			answer["records"] = raised.Records
		}
		return answer
	default:
		return adapterError(err)
	}
}

// together makes all calls in parallel and waits for every answer.
func (s Server) together(calls []Call) []map[string]any {
	answers := make([]map[string]any, len(calls))
	var group sync.WaitGroup
	for number, call := range calls {
		group.Add(1)
		go func() {
			defer group.Done()
			answers[number] = s.answer(call)
		}()
	}
	group.Wait()
	return answers
}

func write(out *json.Encoder, value any) {
	if err := out.Encode(value); err != nil {
		panic(err)
	}
}
