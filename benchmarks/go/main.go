// Times franz-go's kmsg at its parent's pace: the protocol is that of benchmarks/worker.py. The
// clock is the process's processor time, on one processor, so that collecting garbage counts.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type message interface {
	SetVersion(int16)
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

var makers = map[string]func() message{
	"ApiVersionsResponse":                func() message { return new(kmsg.ApiVersionsResponse) },
	"MetadataResponse":                   func() message { return new(kmsg.MetadataResponse) },
	"AlterPartitionReassignmentsRequest": func() message { return new(kmsg.AlterPartitionAssignmentsRequest) },
	"LeaderAndIsrRequest":                func() message { return new(kmsg.LeaderAndISRRequest) },
	"HeartbeatRequest":                   func() message { return new(kmsg.HeartbeatRequest) },
}

// Where results go, so that the compiler cannot find them unused.
var (
	decoded message
	encoded []byte
)

func main() {
	if len(os.Args) != 4 {
		fail("usage: MESSAGE VERSION FILE")
	}
	maker, known := makers[os.Args[1]]
	version, err := strconv.ParseInt(os.Args[2], 10, 16)
	if !known || err != nil {
		fail("no message " + os.Args[1] + " " + os.Args[2])
	}
	body, err := os.ReadFile(os.Args[3])
	if err != nil {
		fail(err.Error())
	}
	runtime.GOMAXPROCS(1)

	decode := func() message {
		made := maker()
		made.SetVersion(int16(version))
		if err := made.ReadFrom(body); err != nil {
			fail(err.Error())
		}
		return made
	}
	whole := decode()
	// A new buffer each time, as large as will be needed: no growing, and no reuse either.
	encode := func() []byte { return whole.AppendTo(make([]byte, 0, len(body))) }
	if !bytes.Equal(encode(), body) {
		fail(os.Args[1] + " does not round-trip")
	}

	kept := make([]byte, 0, len(body))
	operations := map[string]func(int){
		"decode": func(loops int) {
			for i := 0; i < loops; i++ {
				decoded = decode()
			}
		},
		"encode": func(loops int) {
			for i := 0; i < loops; i++ {
				encoded = encode()
			}
		},
		"encode-grown": func(loops int) {
			for i := 0; i < loops; i++ {
				encoded = whole.AppendTo(nil)
			}
		},
		"encode-reused": func(loops int) {
			for i := 0; i < loops; i++ {
				encoded = whole.AppendTo(kept[:0])
			}
		},
	}
	fmt.Println(release())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var operation string
		var loops int
		if _, err := fmt.Sscan(lines.Text(), &operation, &loops); err != nil {
			fail(err.Error())
		}
		run, known := operations[operation]
		if !known {
			fail("no operation " + operation)
		}
		began := processorTime()
		run(loops)
		fmt.Println(float64(processorTime()-began) / float64(loops))
	}
}

// processorTime is that of the whole process, in nanoseconds.
func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err.Error())
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func release() string {
	text := runtime.Version()
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			text = "kmsg " + module.Version + ", " + text
		}
	}
	return text
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "kmsg worker: "+text)
	os.Exit(1)
}
