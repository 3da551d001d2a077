// Package flight reads dumps of PyTorch's flight recorder, as pickles and as JSON: what TORCH_NCCL_DUMP_ON_TIMEOUT=1 and
// TORCH_NCCL_TRACE_BUFFER_SIZE=2000 write to TORCH_NCCL_DEBUG_INFO_TEMP_FILE followed by the rank, formats 2.0 to 2.11.
// The format is in torch/csrc/distributed/c10d/FlightRecorder.hpp. Nothing of a dump is executed. It is part of the
// command ringo, and nothing here is promised to other modules.
package flight

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/internal/pickle"
)

// Is reports whether the beginning of a file is that of a dump. It is not one of Ringo's histories or of any other
// reader's files.
func Is(head []byte) bool {
	if len(head) > 1 && head[0] == 0x80 && head[1] <= 5 {
		return true
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) && (bytes.Contains(head, []byte(`"pg_config"`)) || bytes.Contains(head, []byte(`"comm_lib_version"`)) ||
		bytes.Contains(head, []byte(`"entries"`)) && bytes.Contains(head, []byte(`"record_id"`)))
}

// Read makes a job of dumps. What is no dump is left out, and said in skipped; it is an error if nothing is left.
func Read(files ...string) (j *hang.Job, skipped []error, err error) {
	j = new(hang.Job)
	read := 0
	for _, file := range files {
		b, err := given.Read(file)
		if err == nil {
			err = Add(j, file, RankOf(file), b)
		}
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		read++
	}
	if read == 0 {
		return nil, nil, errors.Join(skipped...)
	}
	return j, skipped, nil
}

var errNone = errors.New("not a dump of the flight recorder")

var digits = regexp.MustCompile(`[0-9]+`)

// RankOf is the rank whose dump has that name: its last number. It is -1 if there is none.
func RankOf(name string) int {
	name = filepath.Base(name)
	for _, end := range []string{".json", ".pickle", ".pkl"} {
		name = strings.TrimSuffix(name, end)
	}
	all := digits.FindAllString(name, -1)
	if len(all) == 0 {
		return -1
	}
	n, err := strconv.Atoi(all[len(all)-1])
	if err != nil || n >= hang.MaxRanks {
		return -1
	}
	return n
}

// Add reads a rank's dump and adds it to a job. name is its file's, for messages.
func Add(j *hang.Job, name string, rank int, b []byte) error {
	wrong := func(err error) error { return fmt.Errorf("%s: %w", name, err) }
	if rank < 0 {
		return wrong(errors.New("a dump of the flight recorder says its rank in its name alone: call it ..._rank_3"))
	}
	root, err := decode(b)
	if err != nil {
		return wrong(err)
	}
	dump, ok := root.(pickle.Dict)
	if !ok {
		return wrong(errNone)
	}
	entries, ok := dump["entries"].(*pickle.List)
	if _, groups := dump["pg_config"]; !ok && !groups {
		return wrong(errNone)
	}
	r := reader{job: j, rank: rank, groups: map[string]int{}}
	r.config(dump["pg_config"])
	if ok {
		if err := r.entries(entries.Items); err != nil {
			return wrong(err)
		}
	}
	to := j.Rank(rank)
	to.Source, to.Calls = name, r.calls
	for _, g := range r.groups {
		if !slices.Contains(to.Made, g) {
			to.Made = append(to.Made, g)
		}
	}
	slices.Sort(to.Made)
	return nil
}

// decode makes a pickle or JSON values as package pickle has them.
func decode(b []byte) (any, error) {
	if len(b) > 0 && b[0] == 0x80 {
		return pickle.Decode(b)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return plain(v), nil
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
		return pickle.Dict(v)
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
		return &pickle.List{Items: v}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// A reader reads one dump.
type reader struct {
	job    *hang.Job
	rank   int
	groups map[string]int // of Job.Groups, by name
	calls  []hang.Call
	names  map[*pickle.List]string // of stacks that several entries share
}

// config reads which groups the rank has made.
func (r *reader) config(v any) {
	groups, _ := v.(pickle.Dict)
	for name, v := range groups {
		g, _ := v.(pickle.Dict)
		ranks := ranksOf(text(g["ranks"]))
		if len(ranks) > 0 {
			r.groups[name] = r.job.GroupOf(given.Printable(name), given.Printable(text(g["desc"])), ranks)
		}
	}
}

// ranksOf reads "[0, 1, 2]" or "0,1,2".
func ranksOf(list string) (ranks []int) {
	for word := range strings.SplitSeq(strings.Trim(list, "[] "), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 || n >= hang.MaxRanks {
			return nil
		}
		ranks = append(ranks, n)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// entries reads calls. Those of a coalesced group have no state of their own: the entry that ends the group has it.
func (r *reader) entries(list []any) error {
	from := 0 // of calls that are in a group under way
	for _, v := range list {
		e, ok := v.(pickle.Dict)
		if !ok {
			return errNone
		}
		c, kind, err := r.call(e)
		if err != nil {
			return err
		}
		if kind == "coalesced" {
			for i := from; i < len(r.calls); i++ {
				if o := &r.calls[i]; o.Group == c.Group && o.State == hang.Called {
					o.State, o.Ends = c.State, c.Ends
				}
			}
			from = len(r.calls)
			continue
		}
		r.calls = append(r.calls, c)
		if c.State != hang.Called {
			from = len(r.calls)
		}
	}
	return nil
}

// call reads an entry.
func (r *reader) call(e pickle.Dict) (c hang.Call, kind string, err error) {
	pg, _ := e["process_group"].(*pickle.List)
	if pg == nil || len(pg.Items) == 0 {
		return c, "", fmt.Errorf("%w: an entry without process_group", errNone)
	}
	name, desc := text(pg.Items[0]), ""
	if len(pg.Items) > 1 {
		desc = text(pg.Items[1])
	}
	g, ok := r.groups[name]
	if !ok {
		g = r.job.GroupOf(given.Printable(name), given.Printable(desc), nil)
		r.groups[name] = g
	}
	if r.job.Groups[g].Desc == "" {
		r.job.Groups[g].Desc = given.Printable(desc)
	}
	c = hang.Call{Group: g, Peer: -1, Where: r.where(e["frames"])}
	_, kind, _ = strings.Cut(text(e["profiling_name"]), ":")
	kind, ends, _ := strings.Cut(kind, " ")
	c.Kind = given.Printable(kind)
	c.Number = number(first(e, "collective_seq_id", "seq_id"))
	if kind == "send" || kind == "recv" {
		r.message(&c, kind, ends)
		c.Number = number(first(e, "p2p_seq_id", "seq_id"))
	}
	var in, out int64
	c.In, in = shapes(e["input_dtypes"], e["input_sizes"])
	c.Out, out = shapes(e["output_dtypes"], e["output_sizes"])
	c.Sizes = hang.Sizes{In: in, Out: out}
	switch text(e["state"]) {
	case "completed":
		c.State = hang.Ended
	case "started":
		c.State = hang.Begun
	}
	c.At, c.Ends = at(e["time_created_ns"]), at(e["time_discovered_completed_ns"])
	c.Limit = time.Duration(min(max(0, number(e["timeout_ms"])), 1<<40)) * time.Millisecond
	return c, kind, nil
}

// message reads "0->1" or "1<-0": ranks of the group.
func (r *reader) message(c *hang.Call, kind, ends string) {
	c.Send = kind == "send"
	_, peer, ok := strings.Cut(ends, map[bool]string{true: "->", false: "<-"}[c.Send])
	n, err := strconv.Atoi(peer)
	ranks := r.job.Groups[c.Group].Ranks
	switch {
	case !ok || err != nil || n < 0:
	case n < len(ranks):
		c.Peer = ranks[n]
	case len(ranks) == 0 && n < hang.MaxRanks:
		c.Peer = n
	}
}

// where is the line of the program that made a call: the first frame that is not of PyTorch.
func (r *reader) where(v any) string {
	frames, _ := v.(*pickle.List)
	if frames == nil {
		return ""
	}
	if s, ok := r.names[frames]; ok {
		return s
	}
	line := ""
	for _, v := range frames.Items {
		f, _ := v.(pickle.Dict)
		file := text(f["filename"])
		if file == "" || library(file) {
			continue
		}
		line = given.Printable(fmt.Sprintf("%s:%d in %s", filepath.Base(file), number(f["line"]), text(f["name"])))
		break
	}
	if r.names == nil {
		r.names = map[*pickle.List]string{}
	}
	r.names[frames] = line
	return line
}

// library reports whether a file is PyTorch's own or that of a library around it.
func library(file string) bool {
	for _, part := range []string{"/torch/", "site-packages/", "dist-packages/", "<frozen", "/python3", "??"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	return strings.HasSuffix(file, ".cpp") || strings.HasSuffix(file, ".so")
}

func shapes(kinds, sizes any) (string, int64) {
	var k []string
	if list, ok := kinds.(*pickle.List); ok {
		for _, v := range list.Items {
			k = append(k, given.Printable(text(v)))
		}
	}
	var s [][]int64
	if list, ok := sizes.(*pickle.List); ok {
		for _, v := range list.Items {
			one, _ := v.(*pickle.List)
			if one == nil {
				continue
			}
			dims := make([]int64, 0, min(8, len(one.Items)))
			for _, n := range one.Items[:min(8, len(one.Items))] {
				dims = append(dims, number(n))
			}
			s = append(s, dims)
		}
	}
	return hang.Shape(k, s)
}

func first(e pickle.Dict, keys ...string) any {
	for _, k := range keys {
		if v, ok := e[k]; ok {
			return v
		}
	}
	return nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// at is a time in nanoseconds, zero for 0 and None.
func at(v any) time.Time {
	if n := number(v); n > 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}
