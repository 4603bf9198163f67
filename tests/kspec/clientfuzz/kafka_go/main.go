// Drives segmentio/kafka-go by the protocol of docs/reference/adapters.md, with the one call that the test of its
// known bug needs. A panic ends it, like any application.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

type call struct {
	Op        string `json:"op"`
	Bootstrap string `json:"bootstrap"`
	Timeout   int    `json:"timeout_ms"`
}

func say(line map[string]any) {
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func main() {
	say(map[string]any{"client": "kafka-go", "version": "v0.4.51", "language": "go"})
	var client *kafka.Client
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var said call
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			panic(err)
		}
		switch said.Op {
		case "connect":
			client = &kafka.Client{
				Addr:      kafka.TCP(said.Bootstrap),
				Timeout:   time.Duration(said.Timeout) * time.Millisecond,
				Transport: &kafka.Transport{},
			}
			say(map[string]any{"ok": true, "result": nil})
		case "create_topics":
			answer, err := client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
				Topics: []kafka.TopicConfig{{Topic: "foo", NumPartitions: 1, ReplicationFactor: 1}},
			})
			if err != nil {
				say(map[string]any{"ok": false, "error": "error", "message": err.Error()})
				continue
			}
			found := map[string]any{}
			for topic, err := range answer.Errors {
				found[topic] = nil
				if err != nil {
					found[topic] = map[string]any{"error": err.Error(), "message": err.Error()}
				}
			}
			say(map[string]any{"ok": true, "result": found})
		case "close":
			say(map[string]any{"ok": true, "result": nil})
		default:
			say(map[string]any{"unsupported": said.Op})
		}
	}
}
