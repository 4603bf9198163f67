// A Go test against a mock Kafka cluster: copy this file beside yours and change TestReassignment.
//
// Needs `mockbroker` on PATH (docs/how-to/install.md) and, for the client shown here, franz-go. In an
// empty folder:
//
//	go mod init recipe && go get github.com/twmb/franz-go/pkg/kadm && go test
package recipe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Mock is a running cluster. It ends with the test, and with this process in any case.
type Mock struct {
	t         *testing.T
	Bootstrap string `json:"bootstrap"`
	Control   string `json:"control"`
}

// Entry is one line of the journal: what was said on the wire.
type Entry struct {
	Sequence   int             `json:"sequence"`
	BrokerID   int             `json:"broker_id"`
	API        string          `json:"api"`
	APIVersion int             `json:"api_version"`
	ClientID   string          `json:"client_id"`
	Body       json.RawMessage `json:"body"`
}

func serve(t *testing.T, options ...string) *Mock {
	t.Helper()
	arguments := append([]string{"serve", "--control", "127.0.0.1:0", "--exit-with-parent"}, options...)
	command := exec.Command("mockbroker", arguments...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	// The first line comes when every broker listens.
	first, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("mockbroker did not start: %v", err)
	}
	mock := &Mock{t: t}
	if err := json.Unmarshal(first, mock); err != nil {
		t.Fatal(err)
	}
	return mock
}

// Ask sends a request to the control port; body nil for a GET. The answer is decoded into answer,
// unless that is nil.
func (m *Mock) Ask(method, path string, body, answer any) {
	m.t.Helper()
	encoded := []byte(nil)
	if body != nil {
		encoded, _ = json.Marshal(body)
	}
	request, err := http.NewRequest(method, m.Control+path, bytes.NewReader(encoded))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode >= 300 {
		m.t.Fatalf("%s %s: %s", method, path, text)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			m.t.Fatal(err)
		}
	}
}

func TestReassignment(t *testing.T) {
	mock := serve(t, "--brokers", "4", "--topic", "foo=1,2,3")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(mock.Bootstrap, ",")...), kgo.ClientID("recipe"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)

	// The first time the broker says that the controller has moved.
	mock.Ask("POST", "/faults", map[string]any{
		"name": "moved", "api": "AlterPartitionReassignments", "error": "NOT_CONTROLLER", "times": 1,
	}, nil)

	var request kadm.AlterPartitionAssignmentsReq
	request.Assign("foo", 0, []int32{2, 3, 4})
	answer, err := admin.AlterPartitionAssignments(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Error(); err != nil {
		t.Fatal(err)
	}

	// Nothing goes on until the test says so: broker 4 catches up, and the reassignment is done.
	mock.Ask("POST", "/join-isr", map[string]any{"partition": "foo-0", "broker": 4}, nil)
	var state struct {
		Topics map[string]map[string]struct {
			Replicas []int `json:"replicas"`
			Adding   []int `json:"adding"`
		} `json:"topics"`
	}
	mock.Ask("GET", "/state", nil, &state)
	partition := state.Topics["foo"]["0"]
	if fmt.Sprint(partition.Replicas, partition.Adding) != "[2 3 4] []" {
		t.Fatalf("foo-0 is %+v", partition)
	}

	// What the client said on the wire: it was refused once, and tried again.
	mock.Ask("GET", "/faults/moved/wait?hits=1", nil, nil)
	var said []Entry
	mock.Ask("GET", "/journal?api=45&direction=request&client_id=recipe", nil, &said)
	if len(said) != 2 {
		t.Fatalf("%d requests, not 2: %+v", len(said), said)
	}
	if !bytes.Contains(said[1].Body, []byte(`[2,3,4]`)) && !bytes.Contains(said[1].Body, []byte(`[2, 3, 4]`)) {
		t.Fatalf("it asked for %s", said[1].Body)
	}
}
