// Package lines is the demo's side channel in Go: one JSON object a line in, one answer a line
// out, as demo/clients/python/line_protocol.py has it. What an operation does is the driver's.
package lines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

// Call is one line in. Replicas is nil when the line says null: cancel.
type Call struct {
	Op        string  `json:"op"`
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Replicas  []int32 `json:"replicas"`
	// AllowReplicationFactorChange is absent unless the demo asks for the guard of KIP-860.
	AllowReplicationFactorChange *bool `json:"allow_replication_factor_change"`
	// Partitions says what to list to clients that cannot ask for everything.
	Partitions []Partition `json:"partitions"`
}

// Guarded tells whether the call forbids a change of the replication factor.
func (c Call) Guarded() bool {
	return c.AllowReplicationFactorChange != nil && !*c.AllowReplicationFactorChange
}

// Partition is one topic partition, written ["foo", 0].
type Partition struct {
	Topic string
	Index int32
}

// UnmarshalJSON reads the pair.
func (p *Partition) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[2]any{&p.Topic, &p.Index})
}

func (p Partition) String() string { return p.Topic + "-" + strconv.Itoa(int(p.Index)) }

// Cluster is the answer to describe_cluster: broker ids ascending.
type Cluster struct {
	Brokers    []int32 `json:"brokers"`
	Controller int32   `json:"controller"`
}

// Reassignment is one value of the answer to list, keyed "topic-partition".
type Reassignment struct {
	Replicas []int32 `json:"replicas"`
	Adding   []int32 `json:"adding"`
	Removing []int32 `json:"removing"`
}

// Unsupported is returned where the client has no public call for the operation.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Failure is an error of the client's: its own name for it, and Kafka's code where it has one.
type Failure struct {
	Name    string
	Code    *int16
	Message string
}

func (f Failure) Error() string { return f.Message }

// Fail makes a Failure that carries a Kafka error code.
func Fail(name string, code int16, message string) error {
	return Failure{Name: name, Code: &code, Message: message}
}

// Operation performs one call and returns what to answer.
type Operation func(Call) (any, error)

// Arguments returns the command line: BOOTSTRAP TIMEOUT_MS.
func Arguments() (bootstrap string, timeout time.Duration) {
	milliseconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	return os.Args[1], time.Duration(milliseconds) * time.Millisecond
}

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

// Serve greets, then answers every line of stdin until it ends.
func Serve(client, version string, operations map[string]Operation) {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	write(out, map[string]any{"client": client, "version": version})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var call Call
		if err := json.Unmarshal(in.Bytes(), &call); err != nil {
			panic(err)
		}
		write(out, answer(operations, call))
	}
}

func answer(operations map[string]Operation, call Call) map[string]any {
	operation, known := operations[call.Op]
	if !known {
		return map[string]any{"unsupported": "no public call for " + call.Op}
	}
	result, err := operation(call)
	var unsupported Unsupported
	var failure Failure
	switch {
	case err == nil:
		return map[string]any{"ok": true, "result": result}
	case errors.As(err, &unsupported):
		return map[string]any{"unsupported": string(unsupported)}
	case errors.As(err, &failure):
		return map[string]any{
			"ok": false, "error": failure.Name, "code": failure.Code, "message": failure.Message,
		}
	default:
		return map[string]any{
			"ok": false, "error": fmt.Sprintf("%T", err), "code": nil, "message": err.Error(),
		}
	}
}

func write(out *json.Encoder, value any) {
	if err := out.Encode(value); err != nil {
		panic(err)
	}
}
