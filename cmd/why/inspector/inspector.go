// Package inspector reads the files of NCCL's Inspector, the profiler plugin in NCCL's ext-profiler/inspector: one JSON
// object for each collective that has ended. So they show no call that hangs. They show each rank's process, the last
// collective that each rank of a communicator has ended, and which rank usually comes last: its collectives are the
// shortest. It is part of the command ringo, and nothing here is promised to other modules.
package inspector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// Is reports whether a file that begins with head is the Inspector's.
func Is(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && bytes.Contains(head, []byte(`"coll_perf"`)) &&
		bytes.Contains(head, []byte(`"n_ranks"`))
}

// An entry is one collective of a rank.
type entry struct {
	Header *struct {
		ID    string `json:"id"`
		Rank  int    `json:"rank"`
		Ranks int    `json:"n_ranks"`
	} `json:"header"`
	Metadata struct {
		Time int64  `json:"dump_timestamp_us"`
		Host string `json:"hostname"`
		Pid  int    `json:"pid"`
	} `json:"metadata"`
	Perf struct {
		Coll   string `json:"coll"`
		Number int64  `json:"coll_sn"`
		Bytes  int64  `json:"coll_msg_size_bytes"`
		Micros int64  `json:"coll_exec_time_us"`
	} `json:"coll_perf"`
}

const (
	mostKept  = 1 << 10 // newest collectives of a rank in a communicator
	mostRanks = 1 << 20 // of all communicators together
)

// A member is a rank of a communicator.
type member struct {
	file, host string
	pid        int
	calls      []hang.Call
	lasted     []time.Duration
}

// A comm is a communicator.
type comm struct {
	size    int
	members map[int]*member
}

var errNone = errors.New("not a file of NCCL's Inspector")

// Read makes a job of the largest communicator in files. Files that are not the Inspector's are left out and named in
// skipped; it is an error if no file is left.
func Read(files ...string) (j *hang.Job, skipped []error, err error) {
	comms := map[string]*comm{}
	left := mostRanks
	for _, file := range files {
		b, err := given.Read(file)
		if err == nil {
			err = add(comms, &left, file, b)
		}
		if err != nil {
			skipped = append(skipped, fmt.Errorf("%s: %w", file, err))
		}
	}
	if len(comms) == 0 {
		return nil, nil, errors.Join(skipped...)
	}
	return job(comms), skipped, nil
}

// add reads a file. A file that is cut off counts up to its last whole object.
func add(comms map[string]*comm, left *int, file string, b []byte) error {
	for d, n := json.NewDecoder(bytes.NewReader(b)), 0; ; n++ {
		var e entry
		switch err := d.Decode(&e); {
		case n > 0 && (err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)):
			return nil
		case err != nil:
			return err
		}
		h := e.Header
		if h == nil || h.Ranks < 1 || h.Ranks > hang.MaxRanks || h.Rank < 0 || h.Rank >= h.Ranks {
			return errNone
		}
		c := comms[h.ID]
		if c == nil {
			if *left -= h.Ranks; *left < 0 {
				return fmt.Errorf("more than %d ranks of communicators", mostRanks)
			}
			c = &comm{h.Ranks, map[int]*member{}}
			comms[h.ID] = c
		}
		if c.size != h.Ranks {
			return errNone
		}
		m := c.members[h.Rank]
		if m == nil {
			m = &member{file: file, host: given.Printable(e.Metadata.Host), pid: e.Metadata.Pid}
			c.members[h.Rank] = m
		}
		size := fmt.Sprintf("%d bytes", e.Perf.Bytes)
		m.calls = append(m.calls, hang.Call{Number: e.Perf.Number, Kind: given.Printable(e.Perf.Coll), Peer: -1,
			Type: "uint8", In: size, Out: size, Sizes: hang.Sizes{In: e.Perf.Bytes, Out: e.Perf.Bytes}, State: hang.Ended,
			At: time.UnixMicro(e.Metadata.Time)})
		m.lasted = append(m.lasted, time.Duration(min(max(0, e.Perf.Micros), 1<<40))*time.Microsecond)
		if len(m.calls) >= 2*mostKept {
			m.calls = append(m.calls[:0], m.calls[mostKept:]...)
			m.lasted = append(m.lasted[:0], m.lasted[mostKept:]...)
		}
	}
}

// job is the job of the largest communicator; of several, of the one with the most ranks in the files.
func job(comms map[string]*comm) *hang.Job {
	var id string
	var world *comm
	for i, c := range comms {
		if world == nil || cmp.Or(cmp.Compare(c.size, world.size), cmp.Compare(len(c.members), len(world.members)),
			cmp.Compare(id, i)) > 0 {
			id, world = i, c
		}
	}
	j := new(hang.Job)
	ranks := make([]int, world.size)
	for r := range ranks {
		ranks[r] = r
		j.Rank(r)
	}
	g := j.GroupOf(given.Printable(id), hang.Communicator, ranks)
	for r, m := range world.members {
		to := j.Rank(r)
		to.Source, to.Pid, to.Calls = m.file, m.pid, m.calls
		if m.pid > 0 {
			to.Name = fmt.Sprintf("process %d on node %s", m.pid, m.host)
		}
		for i := range to.Calls {
			to.Calls[i].Group = g
		}
	}
	if text := world.last(); text != "" {
		j.Notes = append(j.Notes, text)
	}
	return j
}

// last names the rank that usually comes last: the others' collectives last longer, as they wait for it.
func (c *comm) last() string {
	const enough = 8
	type pace struct {
		rank   int
		lasted time.Duration
	}
	var all []pace
	for r, m := range c.members {
		if len(m.lasted) >= enough {
			sorted := slices.Sorted(slices.Values(m.lasted))
			all = append(all, pace{r, sorted[len(sorted)/2]})
		}
	}
	if len(all) < 3 || len(all) < c.size {
		return ""
	}
	slices.SortFunc(all, func(a, b pace) int {
		return cmp.Or(cmp.Compare(a.lasted, b.lasted),
			cmp.Compare(a.rank, b.rank))
	})
	if first, second := all[0], all[1]; 2*first.lasted < second.lasted {
		return fmt.Sprintf("NCCL's Inspector: rank %d usually comes last, as its collectives take %v and those of the "+
			"others %v or more, while they wait for it", first.rank, first.lasted, second.lasted)
	}
	return ""
}

// Judge is hang.Judge for a job of the Inspector's files alone.
func Judge(j *hang.Job) hang.Answer {
	a := hang.Judge(j)
	if a.Reason == hang.Nothing {
		a.Reason = hang.Unknown
		a.Sentence = "I cannot say: NCCL's Inspector writes only the collectives that have ended"
		a.Remedy = "give the dumps of PyTorch's flight recorder too, or an answer of RAS: ncclras -v"
	}
	return a
}
