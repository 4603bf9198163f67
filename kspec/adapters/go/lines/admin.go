package lines

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// AdminArguments are those of the calls for topics, configs, groups and offsets.
type AdminArguments struct {
	ValidateOnly bool           `json:"validate_only"`
	Counts       map[string]int `json:"counts"`
	// Times maps "topic-partition" to "latest", "earliest" or milliseconds: see At.
	Times map[Partition]json.RawMessage `json:"times"`
	// Resources are those to describe: "topic:foo", "broker:1".
	Resources []Resource `json:"resources"`
	// Configs has the values to set by resource and name, nil to remove.
	Configs map[Resource]map[string]*string `json:"configs"`
	States  []string                        `json:"states"`
	Types   []string                        `json:"types"`
	Groups  []string                        `json:"groups"`
	Group   string                          `json:"group"`
}

// Resource is what has configs, written "topic:foo".
type Resource struct{ Kind, Name string }

// UnmarshalText parses "topic:foo".
func (r *Resource) UnmarshalText(text []byte) error {
	r.Kind, r.Name, _ = strings.Cut(string(text), ":")
	return nil
}

func (r Resource) String() string { return r.Kind + ":" + r.Name }

// IsBroker returns whether it is a broker, and its id.
func (r Resource) IsBroker() (int32, bool) {
	id, err := strconv.ParseInt(r.Name, 10, 32)
	return int32(id), r.Kind == "broker" && err == nil
}

// Times of ListOffsets that are no timestamps.
const (
	Latest   = int64(-1)
	Earliest = int64(-2)
)

// At returns a value of Times: a timestamp, Latest or Earliest.
func At(time json.RawMessage) (int64, error) {
	switch string(time) {
	case `"latest"`:
		return Latest, nil
	case `"earliest"`:
		return Earliest, nil
	default:
		return strconv.ParseInt(string(time), 10, 64)
	}
}

// GroupList is the answer to list_groups: the errors are those of brokers beside what others listed.
type GroupList struct {
	Groups []string   `json:"groups"`
	Errors []*Failure `json:"errors"`
}

// NewGroupList sorts the groups.
func NewGroupList(groups []string, errors []*Failure) GroupList {
	slices.Sort(groups)
	return GroupList{append([]string{}, groups...), append([]*Failure{}, errors...)}
}

// GroupState is a group in the answer to describe_groups.
type GroupState struct {
	State   string `json:"state"`
	Members int    `json:"members"`
}
