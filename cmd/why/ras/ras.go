// Package ras reads answers of NCCL's RAS about a job: the text and the JSON of ncclras, from files or from port 28028
// of a living job. RAS counts the collectives that each rank of a communicator has called; it does not tell which of
// them have ended. NCCL's src/ras has the protocol and the formats. It is part of the command ringo, and nothing here
// is promised to other modules.
package ras

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// A Report is one answer of RAS.
type Report struct {
	Version string `json:"nccl_version"`
	Time    string `json:"timestamp"`
	Comms   []Comm `json:"communicators"`
	GPUs    int    `json:"-"` // number of the job's GPUs, 0 if not known
	Lost    []Peer `json:"-"` // processes that do not answer and whose ranks are not named
}

// A Comm is a communicator.
type Comm struct {
	Hash    string `json:"hash"` // as in NCCL's logs: "0x27a079b828ff1a75"
	Size    int    `json:"size"`
	Ranks   []Rank `json:"ranks"`
	Missing []Rank `json:"missing_ranks"`
}

// A Peer is a process.
type Peer struct {
	Host string `json:"host"`
	Pid  int    `json:"pid"`
	GPU  int    `json:"nvml_dev"`
}

// A Rank is a member of a communicator.
type Rank struct {
	Rank int `json:"rank"`
	Peer
	Status Status           `json:"status"`
	Counts map[string]int64 `json:"collective_counts"` // number of calls by kind; nil if not known
}

// A Status is the state of a communicator at one rank.
type Status struct {
	Init    int  `json:"init_state"` // an ncclResult_t
	Async   int  `json:"async_error"`
	Abort   bool `json:"abort_flag"`
	Silent  bool `json:"unresponsive"`
	Dead    bool `json:"considered_dead"`
	Final   bool `json:"finalize_called"`
	Destroy bool `json:"destroy_flag"`
}

var errNone = errors.New("not an answer of NCCL's RAS")

// Is reports whether a file that begins with head is an answer of RAS.
func Is(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if bytes.HasPrefix(head, []byte("{")) {
		return bytes.Contains(head, []byte(`"communicators_count"`))
	}
	return bytes.Contains(head, []byte("Job summary\n===")) || bytes.Contains(head, []byte("Job summary\r\n===")) ||
		bytes.Contains(head, []byte("Communicators... ("))
}

// Parse reads the answers in a file's content, the oldest first.
func Parse(b []byte) ([]Report, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) {
		return parseText(string(b))
	}
	var all []Report
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var one struct {
			Report
			Count *int `json:"communicators_count"`
		}
		if err := d.Decode(&one); err == io.EOF && len(all) > 0 {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if one.Count == nil {
			return nil, errNone
		}
		if err := one.check(); err != nil {
			return nil, err
		}
		all = append(all, one.Report)
	}
}

// Read reads the answers in a file, the oldest first.
func Read(name string) ([]Report, error) {
	b, err := given.Read(name)
	if err != nil {
		return nil, err
	}
	all, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// maxMembers bounds the ranks of all communicators of an answer, and the counts that a text spells for them.
const maxMembers = 1 << 20

// check refuses impossible numbers of ranks.
func (r *Report) check() error {
	members := 0
	for i := range r.Comms {
		c := &r.Comms[i]
		if members += max(0, c.Size); c.Size < 1 || c.Size > hang.MaxRanks || members > maxMembers {
			return fmt.Errorf("%w: communicator %.40q of %d ranks", errNone, c.Hash, c.Size)
		}
		for _, list := range [][]Rank{c.Ranks, c.Missing} {
			for k := range list {
				if m := &list[k]; m.Rank < 0 || m.Rank >= c.Size {
					return fmt.Errorf("%w: rank %d of %d", errNone, m.Rank, c.Size)
				}
			}
		}
	}
	return nil
}
