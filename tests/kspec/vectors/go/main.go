// Command vectors runs franz-go's kmsg over the file of `kspec vectors`, on standard input.
//
// It prints a line of JSON for every vector that kmsg has a message for:
//
//	{"id": ..., "verdict": ..., "kind": ..., "got": "taken" | "refused" | "other bytes" | "panic"}
//
// "other bytes": taken, and written back as other bytes than the vector's canonical ones.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type vector struct {
	Format    string `json:"format"`
	ID        string `json:"id"`
	Type      string `json:"type"`
	APIKey    *int16 `json:"api_key"`
	Version   int16  `json:"version"`
	Kind      string `json:"kind"`
	Verdict   string `json:"verdict"`
	Data      string `json:"data"`
	BodyAt    int    `json:"body_at"`
	Canonical string `json:"canonical"`
}

type message interface {
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
	SetVersion(int16)
	MaxVersion() int16
}

func messageOf(v *vector) message {
	if v.APIKey == nil {
		return nil
	}
	var found message
	switch v.Type {
	case "request":
		if request := kmsg.RequestForKey(*v.APIKey); request != nil {
			found = request
		}
	case "response":
		if response := kmsg.ResponseForKey(*v.APIKey); response != nil {
			found = response
		}
	}
	if found == nil || v.Version > found.MaxVersion() {
		return nil
	}
	found.SetVersion(v.Version)
	return found
}

func read(m message, body, canonical []byte) (got string) {
	defer func() {
		if recover() != nil {
			got = "panic"
		}
	}()
	if err := m.ReadFrom(body); err != nil {
		return "refused"
	}
	if !bytes.Equal(m.AppendTo(nil), canonical) {
		return "other bytes"
	}
	return "taken"
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for decoder := json.NewDecoder(lines); decoder.More(); {
		var v vector
		if err := decoder.Decode(&v); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if v.Format != "" {
			continue // the line that describes the file
		}
		m := messageOf(&v)
		if m == nil {
			continue
		}
		body, err := hex.DecodeString(v.Data[2*v.BodyAt:])
		if err != nil {
			fmt.Fprintln(os.Stderr, v.ID, err)
			os.Exit(1)
		}
		canonical := body
		if v.Canonical != "" {
			canonical, _ = hex.DecodeString(v.Canonical[2*v.BodyAt:])
		}
		fmt.Fprintf(out, "{\"id\": %q, \"verdict\": %q, \"kind\": %q, \"got\": %q}\n",
			v.ID, v.Verdict, v.Kind, read(m, body, canonical))
	}
}
