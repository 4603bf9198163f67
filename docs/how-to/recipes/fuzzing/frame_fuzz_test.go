// A target of Go's own fuzzing: franz-go's kmsg reads Metadata's answer, version 8.
//
//	go mod init fuzzing && go get github.com/twmb/franz-go/pkg/kmsg@v1.15.0
//	mockbroker fuzz seeds --format go --api 3 --version 8 --mutated 200 --out testdata/fuzz
//	go test -v                             # every seed once, by name
//	go test -fuzz FuzzMetadataResponse -fuzztime 60s
//
// In place of kmsg stands your decoder. What holds: it does not panic, and what it read it writes and
// reads again. A target is called as the folder of its seeds: Fuzz and the message.
package fuzzing

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const version = 8

func FuzzMetadataResponse(f *testing.F) {
	f.Fuzz(func(t *testing.T, frame []byte) {
		// The size, and the correlation id: the header of a version that is not flexible.
		if len(frame) < 8 || int(binary.BigEndian.Uint32(frame)) != len(frame)-4 {
			return
		}
		read := kmsg.NewPtrMetadataResponse()
		read.SetVersion(version)
		if read.ReadFrom(frame[8:]) != nil {
			return
		}
		again := kmsg.NewPtrMetadataResponse()
		again.SetVersion(version)
		if err := again.ReadFrom(read.AppendTo(nil)); err != nil {
			t.Fatalf("read, written, and not read again: %v", err)
		}
	})
}
