// Package checks has what the programs of this folder share: waiting with a limit, and failing.
package checks

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	Topic      = "foo"
	Partitions = 4
	Records    = 12
	patience   = 60 * time.Second
)

// Base is the timestamp of each batch's first record.
var Base = time.UnixMilli(1_700_000_000_000)

// Must ends the program if there is an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Equal ends the program if found is not expected.
func Equal(what string, found, expected any) {
	if fmt.Sprint(found) != fmt.Sprint(expected) {
		Must(fmt.Errorf("%s: %v, expected %v", what, found, expected))
	}
}

// Until waits for a condition and ends the program if it never holds.
func Until(what string, done func() bool) {
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			Must(fmt.Errorf("in vain: %s", what))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Values are those of a number of records.
func Values(name string) []string {
	values := make([]string, Records)
	for i := range values {
		values[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return values
}

// Bag collects values from several goroutines.
type Bag struct {
	mutex  sync.Mutex
	values []string
}

func (bag *Bag) Add(value string) {
	bag.mutex.Lock()
	defer bag.mutex.Unlock()
	bag.values = append(bag.values, value)
}

func (bag *Bag) Len() int {
	bag.mutex.Lock()
	defer bag.mutex.Unlock()
	return len(bag.values)
}

// Sorted values as one text, for Equal.
func (bag *Bag) Sorted() string {
	bag.mutex.Lock()
	defer bag.mutex.Unlock()
	return Sorted(bag.values)
}

func Sorted(values []string) string {
	sorted := append([]string(nil), values...)
	sort.Strings(sorted)
	return strings.Join(sorted, " ")
}
