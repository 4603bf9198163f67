package lines

import (
	"encoding/json"
	"fmt"
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
	// ACLs are those to create. Filter and Filters select some to describe or to delete.
	ACLs    []ACL `json:"acls"`
	Filters []ACL `json:"filters"`
	// Filter is that of describe_acls or, as "user:alice", of describe_quotas.
	Filter  string  `json:"filter"`
	Brokers []int32 `json:"brokers"`
	// Moves has the directory to which a replica is moved.
	Moves map[Replica]string `json:"moves"`
	// Quotas has the values to set by entity and name, nil to remove.
	Quotas map[Entity]map[string]*float64 `json:"quotas"`
}

// ACL is an access rule or a filter, written "allow User:alice read topic:foo". In a filter each part
// may be "any"; the host is "*" or any, and the pattern literal.
type ACL struct{ Permission, Principal, Operation, Kind, Name string }

// UnmarshalText parses an access rule.
func (a *ACL) UnmarshalText(text []byte) error {
	words := strings.Fields(string(text))
	if len(words) != 4 {
		return fmt.Errorf("%q is not an access rule", text)
	}
	kind, name, _ := strings.Cut(words[3], ":")
	*a = ACL{words[0], words[1], words[2], kind, name}
	return nil
}

func (a ACL) String() string {
	name := a.Kind
	if a.Name != "" {
		name += ":" + a.Name
	}
	return strings.ToLower(a.Permission) + " " + a.Principal + " " + strings.ToLower(a.Operation) +
		" " + strings.ToLower(name[:len(a.Kind)]) + name[len(a.Kind):]
}

// ACLTexts returns access rules as texts, ascending.
func ACLTexts(rules []ACL) []string {
	found := []string{}
	for _, each := range rules {
		found = append(found, each.String())
	}
	slices.Sort(found)
	return found
}

// Replica is a partition at a broker, written "1:foo-0".
type Replica struct {
	Broker    int32
	Partition Partition
}

// UnmarshalText parses "1:foo-0".
func (r *Replica) UnmarshalText(text []byte) error {
	broker, partition, _ := strings.Cut(string(text), ":")
	id, err := strconv.ParseInt(broker, 10, 32)
	if err != nil {
		return err
	}
	r.Broker = int32(id)
	return r.Partition.UnmarshalText([]byte(partition))
}

func (r Replica) String() string { return strconv.Itoa(int(r.Broker)) + ":" + r.Partition.String() }

// Entity is whose quotas they are, written "user:alice", and "user:" for the default.
type Entity struct{ Type, Name string }

// UnmarshalText parses "user:alice".
func (e *Entity) UnmarshalText(text []byte) error {
	e.Type, e.Name, _ = strings.Cut(string(text), ":")
	return nil
}

func (e Entity) String() string { return e.Type + ":" + e.Name }

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
