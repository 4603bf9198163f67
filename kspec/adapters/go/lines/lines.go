// Package lines is the adapter protocol in Go: one JSON object a line in, one answer a line out, as
// docs/adapters.md has it. What a call does is the adapter's.
package lines

import (
	"bufio"
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

// Call is one line in.
type Call struct {
	Op        string `json:"op"`
	Bootstrap string `json:"bootstrap"`
	TimeoutMs int    `json:"timeout_ms"`
	ClientID  string `json:"client_id"`
	SASL      *SASL  `json:"sasl"`

	// Topics is a list of names, or what to create by name: see Names and NewTopics.
	Topics json.RawMessage `json:"topics"`
	// Assignments are replicas by "topic-partition", null to cancel.
	Assignments map[Partition][]int32 `json:"assignments"`
	// AllowReplicationFactorChange is absent unless the case asks for the guard of KIP-860.
	AllowReplicationFactorChange *bool `json:"allow_replication_factor_change"`
	// Partitions says which; nil is all of them.
	Partitions []Partition `json:"partitions"`
	// Type is that of an election: "preferred" or "unclean".
	Type string `json:"type"`
	// Calls are those of "together".
	Calls []Call `json:"calls"`
}

// SASL says how to authenticate.
type SASL struct {
	Mechanism string `json:"mechanism"`
	Username  string `json:"username"`
	Password  string `json:"password"`
}

// NewTopic is one value of create_topics.
type NewTopic struct {
	Partitions        int32 `json:"partitions"`
	ReplicationFactor int16 `json:"replication_factor"`
}

// Servers are the addresses to start from.
func (c Call) Servers() []string { return strings.Split(c.Bootstrap, ",") }

// Timeout is what the client is told as its own.
func (c Call) Timeout() time.Duration { return time.Duration(c.TimeoutMs) * time.Millisecond }

// Guarded tells whether the call forbids a change of the replication factor.
func (c Call) Guarded() bool {
	return c.AllowReplicationFactorChange != nil && !*c.AllowReplicationFactorChange
}

// Names are the topics to describe.
func (c Call) Names() (names []string, err error) {
	err = json.Unmarshal(c.Topics, &names)
	return names, err
}

// NewTopics are the topics to create, by name, with a partition and a replica unless said otherwise.
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

// UnmarshalText reads "foo-0".
func (p *Partition) UnmarshalText(text []byte) error {
	at := strings.LastIndexByte(string(text), '-')
	if at < 0 {
		return fmt.Errorf("%q is no partition", text)
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

// PartitionState is a partition in the answer to describe_topics, by its number as text.
type PartitionState struct {
	Leader   int32   `json:"leader"`
	Replicas []int32 `json:"replicas"`
	ISR      []int32 `json:"isr"`
}

// Unsupported is returned where the client has no public call for the operation.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Failure is an error of the client's: its own name for it, and Kafka's code where it has one.
type Failure struct {
	Name    string `json:"error"`
	Code    *int16 `json:"code"`
	Message string `json:"message"`
}

func (f Failure) Error() string { return f.Message }

// Fail makes a Failure that carries a Kafka error code.
func Fail(name string, code int16, message string) error {
	return Failure{Name: name, Code: &code, Message: message}
}

// Outcome is an error as an answer has it, for a call or one of its partitions; nil for none.
func Outcome(err error) any {
	var failure Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return failure
	default:
		return Failure{Name: fmt.Sprintf("%T", err), Message: err.Error()}
	}
}

// Operation performs one call and returns what to answer.
type Operation func(Call) (any, error)

// ModuleVersion is the version of a dependency this binary was built with.
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

// Serve greets, then answers every line of stdin until it ends. The operations hold "connect" and
// "close" as well.
func Serve(client, version string, operations map[string]Operation) {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	capabilities := []string{}
	for name := range operations {
		if name != "connect" && name != "close" {
			capabilities = append(capabilities, name)
		}
	}
	slices.Sort(capabilities)
	write(out, map[string]any{
		"client": client, "version": version, "language": "go", "capabilities": capabilities,
	})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var call Call
		if err := json.Unmarshal(in.Bytes(), &call); err != nil {
			panic(err)
		}
		write(out, answer(operations, call))
	}
	_, _ = operations["close"](Call{})
}

func answer(operations map[string]Operation, call Call) map[string]any {
	if call.Op == "together" {
		return map[string]any{"ok": true, "result": together(operations, call.Calls)}
	}
	operation, known := operations[call.Op]
	if !known {
		return map[string]any{"unsupported": "no public call for " + call.Op}
	}
	result, err := operation(call)
	var unsupported Unsupported
	if errors.As(err, &unsupported) {
		return map[string]any{"unsupported": string(unsupported)}
	}
	if err == nil {
		return map[string]any{"ok": true, "result": result}
	}
	failure := Outcome(err).(Failure)
	return map[string]any{
		"ok": false, "error": failure.Name, "code": failure.Code, "message": failure.Message,
	}
}

// together asks all at once, and waits for every answer.
func together(operations map[string]Operation, calls []Call) []map[string]any {
	answers := make([]map[string]any, len(calls))
	var group sync.WaitGroup
	for number, call := range calls {
		group.Add(1)
		go func() {
			defer group.Done()
			answers[number] = answer(operations, call)
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
