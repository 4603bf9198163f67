// Package kproto runs mock Kafka clusters for Go tests: a cluster per test, which any client connects
// to, and which the test disturbs and inspects.
//
//	func TestRetry(t *testing.T) {
//		mock := kproto.Start(t, kproto.Profile("kafka-2.4"), kproto.Topic("foo", 1, 3))
//		mock.Fault(kproto.Fault{API: "Produce", Error: "NOT_LEADER_OR_FOLLOWER", Times: 1})
//		produce(t, mock.Seeds())
//		if n := len(mock.Requests("Produce")); n != 2 {
//			t.Errorf("%d requests", n)
//		}
//	}
//
// The first Start of a test binary starts one server, the command mockbroker, which ends with the
// binary. Tests may be parallel. A failed test logs the traffic of its cluster.
package kproto

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	urlVariable     = "KPROTO_MOCKBROKER_URL"
	commandVariable = "KPROTO_MOCKBROKER"
	tokenVariable   = "MOCKBROKER_TOKEN"
	install         = "uv tool install 'kproto[mock] @ git+https://github.com/kproto/kproto'"

	journalLines = 200
	longestWait  = time.Minute
	grace        = 5 * time.Second // for an answer about a wait that was too long
)

// An Option is an option of a cluster.
type Option func(*clusterOptions)

// Profile is the release that the brokers behave as, such as kafka-2.4. Default: the newest one.
func Profile(name string) Option { return func(o *clusterOptions) { o.Profile = &name } }

// Brokers is the number of brokers, with ids from 1 on. Default: 3.
func Brokers(count int) Option { return func(o *clusterOptions) { o.Brokers = &count } }

// Topic creates a topic before the cluster starts.
func Topic(name string, partitions, replicas int) Option {
	return TopicText(fmt.Sprintf("%s:%d:%d", name, partitions, replicas))
}

// TopicText creates a topic with the replicas of each partition, such as foo=1,2,3/2,3,4.
func TopicText(text string) Option {
	return func(o *clusterOptions) { o.Topics = append(o.Topics, text) }
}

// Faults are fault rules that hold from the start of the cluster.
func Faults(rules ...Fault) Option {
	return func(o *clusterOptions) { o.Faults = append(o.Faults, rules...) }
}

// FaultsMustHit fails the test if no request has hit one of its fault rules.
func FaultsMustHit() Option {
	strict := true
	return func(o *clusterOptions) { o.StrictFaults = &strict }
}

// Ptr is a pointer to a value, for members of Fault whose zero value means something.
func Ptr[T any](value T) *T { return &value }

// A Mock is a running cluster. Its methods fail the test if the server refuses a request; call them
// from the test's goroutine.
type Mock struct {
	Cluster
	t    testing.TB
	base string
}

// Start starts a cluster that ends with the test.
func Start(t testing.TB, options ...Option) *Mock {
	t.Helper()
	base, err := server()
	if err != nil {
		t.Fatal(err)
	}
	body := clusterOptions{Labels: map[string]string{"test": t.Name()}}
	for _, option := range options {
		option(&body)
	}
	m := &Mock{t: t, base: base + "/clusters"}
	if err := m.request("POST", "?timeout=1m", body, &m.Cluster); err != nil {
		t.Fatal(err)
	}
	m.base += "/" + m.ID
	t.Cleanup(m.end)
	return m
}

func (m *Mock) end() {
	if m.t.Failed() {
		m.t.Logf("the journal of the mock cluster:\n%s", m.JournalText())
	}
	var removed RemovedCluster
	if err := m.request("DELETE", "", nil, &removed); err != nil {
		m.t.Error(err)
	}
	for _, problem := range removed.Problems {
		m.t.Error(problem)
	}
}

// Seeds are the addresses of the brokers.
func (m *Mock) Seeds() []string { return strings.Split(m.Bootstrap, ",") }

// Fault adds a fault rule in front of the existing ones.
func (m *Mock) Fault(rule Fault) {
	m.t.Helper()
	m.must("POST", "/faults", map[string]any{"faults": []Fault{rule}}, nil)
}

// Rules are the fault rules with their hits, in the order in which they are tried.
func (m *Mock) Rules() []Rule {
	m.t.Helper()
	var found struct{ Faults []Rule }
	m.must("GET", "/faults", nil, &found)
	return found.Faults
}

// State is what the controller knows: brokers, and partitions by topic and number.
func (m *Mock) State() State {
	m.t.Helper()
	var found State
	m.must("GET", "/state", nil, &found)
	return found
}

// Requests are the recorded requests of an API, given by name or key.
func (m *Mock) Requests(api string) []JournalEntry {
	m.t.Helper()
	return m.Journal("direction", "request", "api", api)
}

// Journal has the recorded traffic. The filters are pairs of a name and a value, those of
// GET /journal: api, direction, client_id, broker, connection, event, after, last.
func (m *Mock) Journal(filters ...string) []JournalEntry {
	m.t.Helper()
	var found []JournalEntry
	m.must("GET", "/journal?"+query(filters), nil, &found)
	return found
}

// JournalText is the newest traffic as text, one line a frame.
func (m *Mock) JournalText() string {
	path := fmt.Sprintf("/journal?last=%d", journalLines)
	text, err := m.send(context.Background(), "GET", path, nil, "text/plain")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// WaitFor returns the first recorded request of an API, and waits for it until the context ends. The
// filters are those of Journal.
func (m *Mock) WaitFor(ctx context.Context, api string, filters ...string) JournalEntry {
	m.t.Helper()
	return m.WaitForCount(ctx, 1, api, filters...)[0]
}

// WaitForCount returns the first requests of an API, and waits until so many are recorded.
func (m *Mock) WaitForCount(ctx context.Context, count int, api string, filters ...string) []JournalEntry {
	m.t.Helper()
	given := append([]string{"api", api, "count", fmt.Sprint(count)}, filters...)
	for {
		left := longestWait
		if deadline, ok := ctx.Deadline(); ok {
			left = max(min(left, time.Until(deadline)), time.Millisecond)
		}
		timeout := []string{"timeout", fmt.Sprintf("%dms", left.Milliseconds())}
		var found []JournalEntry
		err := m.wait(ctx, "/journal/wait?"+query(append(timeout, given...)), &found)
		if err == nil {
			return found
		}
		var refused *Refused
		if !errors.As(err, &refused) || refused.Status != http.StatusRequestTimeout || left < longestWait {
			m.t.Fatalf("waiting for %s: %v", api, err)
		}
	}
}

// wait ends when the context is cancelled. At its deadline the server's answer has the reason.
func (m *Mock) wait(ctx context.Context, path string, answer any) error {
	request, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			time.Sleep(grace)
		}
		stop(context.Cause(ctx))
	})()
	err := m.requestWith(request, "GET", path, nil, answer)
	if cause := context.Cause(request); err != nil && cause != nil {
		return cause
	}
	return err
}

// Records are the records of a partition such as foo-0.
func (m *Mock) Records(partition string) []Record {
	m.t.Helper()
	var found Records
	m.must("GET", "/logs/"+url.PathEscape(partition)+"/records?max=10000", nil, &found)
	return found.Records
}

// CommittedRecords are those that a consumer with read_committed gets, without aborted transactions.
func (m *Mock) CommittedRecords(partition string) []Record {
	m.t.Helper()
	var found Records
	m.must("GET", "/logs/"+url.PathEscape(partition)+"/records?max=10000&committed=true", nil, &found)
	return found.Records
}

// Groups are the groups by id.
func (m *Mock) Groups() map[string]Group {
	m.t.Helper()
	var found map[string]Group
	m.must("GET", "/groups", nil, &found)
	return found
}

// WaitForGroup returns a group once it has a state, such as Stable, and so many members.
func (m *Mock) WaitForGroup(group, state string, members int) Group {
	m.t.Helper()
	var found Group
	wanted := []string{"state", state, "members", fmt.Sprint(members), "timeout", "30s"}
	m.must("GET", "/groups/"+url.PathEscape(group)+"/wait?"+query(wanted), nil, &found)
	return found
}

// Committed are the committed offsets of a group by partition.
func (m *Mock) Committed(group string) map[string]CommittedOffset {
	m.t.Helper()
	var found map[string]CommittedOffset
	m.must("GET", "/offsets/"+url.PathEscape(group), nil, &found)
	return found
}

// An Action is something that happened to the cluster. Members has what belongs to its kind.
type Action struct {
	Offset  int
	Kind    string
	Members map[string]any
}

// UnmarshalJSON reads an action.
func (a *Action) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &a.Members); err != nil {
		return err
	}
	offset, _ := a.Members["offset"].(float64)
	a.Offset = int(offset)
	a.Kind, _ = a.Members["kind"].(string)
	return nil
}

func (m *Mock) carryOut(operation string, body any) []Action {
	m.t.Helper()
	var found struct{ Actions []Action }
	m.must("POST", "/"+operation, body, &found)
	return found.Actions
}

// ---- requests ----

// Refused is an answer of the server that is not a success.
type Refused struct {
	Status  int
	Problem string
}

func (r *Refused) Error() string { return fmt.Sprintf("mockbroker: %s (%d)", r.Problem, r.Status) }

func query(pairs []string) string {
	if len(pairs)%2 != 0 {
		panic("kproto: filters are pairs of a name and a value")
	}
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

func (m *Mock) must(method, path string, body, answer any) {
	m.t.Helper()
	if err := m.request(method, path, body, answer); err != nil {
		m.t.Fatal(err)
	}
}

func (m *Mock) request(method, path string, body, answer any) error {
	return m.requestWith(context.Background(), method, path, body, answer)
}

func (m *Mock) requestWith(ctx context.Context, method, path string, body, answer any) error {
	text, err := m.send(ctx, method, path, body, "application/json")
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (m *Mock) send(ctx context.Context, method, path string, body any, accept string) ([]byte, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, m.base+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	if token := os.Getenv(tokenVariable); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if how := ended(ctx); how != nil {
			return nil, fmt.Errorf("the server of this test binary has ended (%s): %w", how, err)
		}
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		var refused struct{ Error string }
		if json.Unmarshal(text, &refused) != nil {
			refused.Error = string(text)
		}
		return nil, &Refused{response.StatusCode, refused.Error}
	}
	return text, nil
}

// ---- the server ----

// held is the server's standard input. The system closes it when the test binary ends, however it
// does; the garbage collector must not.
var held io.WriteCloser

// exited has how the server ended, once it has.
var exited = make(chan *os.ProcessState, 1)

// ended is how the server ended. After a failed request it is soon known; nil: the server runs, or is not ours.
func ended(ctx context.Context) *os.ProcessState {
	select {
	case how := <-exited:
		exited <- how
		return how
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return nil
}

// server is the URL of the control port, of a server that runs already or of one that ends with this
// process.
var server = sync.OnceValues(func() (string, error) {
	if running := os.Getenv(urlVariable); running != "" {
		return strings.TrimSuffix(running, "/"), nil
	}
	command := os.Getenv(commandVariable)
	if command == "" {
		found, err := exec.LookPath("mockbroker")
		if err != nil {
			return "", fmt.Errorf(
				"there is no mockbroker on PATH, in %s or at %s; install it: %s",
				commandVariable, urlVariable, install)
		}
		command = found
	}
	process := exec.Command(
		command, "serve", "--no-cluster", "--control", "127.0.0.1:0", "--exit-on-stdin-eof")
	process.Stderr = os.Stderr
	var err error
	if held, err = process.StdinPipe(); err != nil {
		return "", err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := process.Start(); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("%s did not start: %w", command, err)
	}
	var first struct{ Control string }
	if err := json.Unmarshal(line, &first); err != nil {
		return "", fmt.Errorf("%s: its first line is %q: %w", command, line, err)
	}
	go func() {
		_ = process.Wait()
		exited <- process.ProcessState
	}()
	return first.Control, nil
})
