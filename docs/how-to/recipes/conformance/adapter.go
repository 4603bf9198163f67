// An adapter that drives franz-go for kspec, with two calls: copy this file, and put your client in the
// place of kadm. docs/reference/adapters.md describes the protocol and lists all calls.
//
//	go mod init adapter && go get github.com/twmb/franz-go/pkg/kadm && go build -o adapter .
//	kspec run --adapter ./adapter --case framing --out report
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type call struct {
	Op        string `json:"op"`
	Bootstrap string `json:"bootstrap"`
	ClientID  string `json:"client_id"`
	TimeoutMs int    `json:"timeout_ms"`
	SASL      any    `json:"sasl"`
}

type object map[string]any

// clientError is an error that the client returned. Any other one is the adapter's own.
type clientError struct{ error }

func (e clientError) Unwrap() error { return e.error }

var errUnsupported = errors.New("this adapter has no such call or option")

type adapter struct {
	admin   *kadm.Client
	timeout time.Duration
}

// perform returns what the client returned, and the same in the protocol's form.
func (a *adapter) perform(c call) (raw, result any, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.timeout)
	defer cancel()

	switch c.Op {
	case "connect":
		if c.SASL != nil {
			return nil, nil, errUnsupported
		}
		a.timeout = time.Duration(c.TimeoutMs) * time.Millisecond
		client, err := kgo.NewClient(
			kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...),
			kgo.ClientID(c.ClientID),
			kgo.DialTimeout(a.timeout),
			kgo.RequestTimeoutOverhead(a.timeout),
			kgo.RetryTimeout(a.timeout),
		)
		if err != nil {
			return nil, nil, err
		}
		a.admin = kadm.NewClient(client)
		return nil, nil, nil
	case "close":
		if a.admin != nil {
			a.admin.Close()
		}
		a.admin = nil
		return nil, nil, nil
	case "list_topics":
		topics, err := a.admin.ListTopics(ctx)
		if err != nil {
			return nil, nil, clientError{err}
		}
		return topics, topics.Names(), nil
	case "describe_cluster":
		metadata, err := a.admin.BrokerMetadata(ctx)
		if err != nil {
			return nil, nil, clientError{err}
		}
		ids := metadata.Brokers.NodeIDs()
		slices.Sort(ids)
		return metadata, object{"brokers": ids, "controller": metadata.Controller}, nil
	}
	return nil, nil, errUnsupported
}

func answer(raw, result any, err error) object {
	switch {
	case err == nil:
		return object{"ok": true, "result": result, "raw": fmt.Sprintf("%+v", raw)}
	case errors.Is(err, errUnsupported):
		return object{"unsupported": err.Error()}
	case !errors.As(err, &clientError{}):
		return object{"adapter_error": object{"error": fmt.Sprintf("%T", err), "message": err.Error()}}
	}
	class := fmt.Sprintf("%T", errors.Unwrap(err))
	said := object{"ok": false, "error": class, "code": nil, "message": err.Error()}
	if broker := (*kerr.Error)(nil); errors.As(err, &broker) {
		said["error"], said["code"] = broker.Message, broker.Code
	}
	return said
}

func main() {
	out := json.NewEncoder(os.Stdout) // one line for each value, not buffered
	_ = out.Encode(object{
		"client": "my-client", "version": "1.0", "language": "go",
		"capabilities": []string{"list_topics", "describe_cluster"},
		"options": object{
			"DialTimeout": "timeout_ms", "RequestTimeoutOverhead": "timeout_ms",
			"RetryTimeout": "timeout_ms", "the context of each call": "timeout_ms",
		},
	})
	a := &adapter{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			_ = out.Encode(answer(nil, nil, err))
			continue
		}
		_ = out.Encode(answer(a.perform(c)))
	}
	if a.admin != nil {
		a.admin.Close()
	}
}
