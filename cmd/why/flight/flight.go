// Package flight reads dumps of PyTorch's flight recorder, pickles or JSON, in formats 2.0 to 2.11. PyTorch writes them
// with TORCH_NCCL_DUMP_ON_TIMEOUT=1 and TORCH_NCCL_TRACE_BUFFER_SIZE=2000, into files whose names are
// TORCH_NCCL_DEBUG_INFO_TEMP_FILE and the rank. torch/csrc/distributed/c10d/FlightRecorder.hpp defines the format.
// Nothing of a dump is executed. It is part of the command ringo, and nothing here is promised to other modules.
package flight

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/internal/pickle"
)

// Is reports whether a file that begins with head is a dump. Ringo's histories and the files of other readers are not.
func Is(head []byte) bool {
	if len(head) > 1 && head[0] == 0x80 && head[1] <= 5 {
		return true
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) &&
		(bytes.Contains(head, []byte(`"pg_config"`)) || bytes.Contains(head, []byte(`"comm_lib_version"`)) ||
			bytes.Contains(head, []byte(`"entries"`)) && bytes.Contains(head, []byte(`"record_id"`)))
}

// mostCalls is how many calls that have ended are kept of all dumps together; each dump keeps its newest ones. Calls
// that have not ended are all kept.
const mostCalls = 1 << 20

// Read makes a job of dumps. Files that are no dumps are left out and named in skipped; it is an error if no file is
// left. Read decodes a dump on each processor at a time. It needs the memory of these dumps, and about 250 bytes for
// each call that is kept.
func Read(files ...string) (j *hang.Job, skipped []error, err error) {
	dumps := make([]record, len(files))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(files), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			w := newWorker(max(16, mostCalls/len(files)))
			for i := next.Add(1) - 1; int(i) < len(files); i = next.Add(1) - 1 {
				dumps[i] = w.read(files[i])
			}
		})
	}
	all.Wait()
	j = new(hang.Job)
	read, most := 0, 0
	var torn []int
	for i := range dumps {
		if dumps[i].err != nil {
			skipped = append(skipped, dumps[i].err)
			torn = append(torn, RankOf(files[i]))
			continue
		}
		read++
	}
	addNewest(j, dumps)
	if read == 0 {
		return nil, nil, errors.Join(skipped...)
	}
	for i := range j.Groups {
		for _, r := range j.Groups[i].Ranks {
			most = max(most, r)
		}
	}
	j.Rank(most)             // makes ranks without a dump, of which other files may know something
	for _, r := range torn { // a pickle of something else may have any number
		if r <= max(most, len(j.Ranks)-1) && r >= 0 && j.Rank(r).Source == "" {
			j.Rank(r).Torn = true
		}
	}
	return j, skipped, nil
}

// addNewest adds the newest dump of each rank to a job, by what is in them, and notes that there are others.
func addNewest(j *hang.Job, dumps []record) {
	order := make([]*record, 0, len(dumps))
	for i := range dumps {
		if dumps[i].err == nil {
			order = append(order, &dumps[i])
		}
	}
	slices.SortStableFunc(order, func(x, y *record) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), y.newest.Compare(x.newest), y.taken.Compare(x.taken))
	})
	var last *record
	var older []string
	for _, d := range order {
		switch {
		case last == nil || last.rank != d.rank:
			last = d
			d.add(j)
		case !last.newest.Equal(d.newest): // a copy is not older
			older = append(older, d.file)
		}
		d.groups, d.calls = nil, nil
	}
	if n := len(older); n > 0 {
		text := " is older than another one"
		if n > 1 {
			text = fmt.Sprintf(" and %d more are older than others", n-1)
		}
		j.Notes = append(j.Notes, "of each rank the newest dump counts: "+older[0]+text)
	}
}

var errNone = errors.New("not a dump of the flight recorder")

var digits = regexp.MustCompile(`[0-9]+`)

// RankOf is the rank in the name of a dump: the last number, -1 if there is none.
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

// A record is a dump that was read, or the error. Group of a call is an index of groups.
type record struct {
	err    error
	file   string
	taken  time.Time
	newest time.Time // in the calls
	build  string
	rank   int
	groups []hang.Group
	calls  []hang.Call
}

// add adds a dump to a job.
func (d *record) add(j *hang.Job) {
	to := j.Rank(d.rank)
	to.Source, to.Taken, to.Calls, to.Build = d.file, d.taken, d.calls, d.build
	index := make([]int, len(d.groups))
	for i, g := range d.groups {
		index[i] = j.GroupOf(g.Name, g.Desc, g.Ranks)
		if of := &j.Groups[index[i]]; of.Desc == "" {
			of.Desc = g.Desc
		}
		if !slices.Contains(to.Made, index[i]) {
			to.Made = append(to.Made, index[i])
		}
	}
	slices.Sort(to.Made)
	for i := range to.Calls {
		to.Calls[i].Group = index[to.Calls[i].Group]
	}
}

// A worker reads dumps one after the other. A text that several dumps have is kept once.
type worker struct {
	keep  int // how many ended calls of a dump are kept
	texts map[string]string
	ranks map[string][]int // lists of ranks by their spelling
}

func newWorker(keep int) *worker {
	return &worker{keep, map[string]string{}, map[string][]int{}}
}

// mostTexts bounds texts, and ranks, of a worker.
const mostTexts = 1 << 16

// one returns the text made printable; equal texts share memory.
func (w *worker) one(text string) string {
	if text == "" {
		return ""
	}
	if s, ok := w.texts[text]; ok {
		return s
	}
	text = strings.Clone(given.Printable(text))
	if len(w.texts) < mostTexts {
		w.texts[text] = text
	}
	return text
}

// list returns the ranks that a text lists; equal texts share a list.
func (w *worker) list(text string) []int {
	ranks, ok := w.ranks[text]
	if !ok {
		if ranks = ranksOf(text); len(w.ranks) < mostTexts {
			w.ranks[strings.Clone(text)] = ranks
		}
	}
	return ranks
}

func (w *worker) read(file string) record {
	b, err := given.Read(file)
	if err != nil {
		return record{err: err}
	}
	d := w.parse(file, RankOf(file), b)
	if info, err := os.Stat(file); err == nil {
		d.taken = info.ModTime()
	}
	return d
}

// parse reads a rank's dump. name is the file's, for messages.
func (w *worker) parse(name string, rank int, b []byte) record {
	wrong := func(err error) record { return record{err: fmt.Errorf("%s: %w", name, err)} }
	if rank < 0 {
		return wrong(errors.New("a dump of the flight recorder says its rank in its name alone: call it ..._rank_3"))
	}
	root, err := decode(b)
	if err != nil {
		return wrong(err)
	}
	all, ok := root.(*pickle.Dict)
	if !ok {
		return wrong(errNone)
	}
	entries, ok := all.Get("entries").(*pickle.List)
	if !ok && all.Get("pg_config") == nil {
		return wrong(errNone)
	}
	r := reader{worker: w, record: record{file: name, rank: rank}, index: map[string]int{}}
	r.build = w.one(fmt.Sprintf("format %s, NCCL %s", text(all.Get("version")),
		cmp.Or(text(all.Get("comm_lib_version")), text(all.Get("nccl_version")), "?")))
	r.config(all.Get("pg_config"))
	if ok {
		if err := r.entries(entries.Items); err != nil {
			return wrong(err)
		}
	}
	if !r.timed {
		for i := range r.calls {
			if r.calls[i].State == hang.Called {
				r.calls[i].State = hang.Open
			}
		}
	}
	r.forget()
	for i := range r.calls {
		for _, t := range []time.Time{r.calls[i].At, r.calls[i].Ends} {
			if t.After(r.newest) {
				r.newest = t
			}
		}
	}
	return r.record
}

// decode turns a pickle or JSON into values of package pickle.
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
		d := new(pickle.Dict)
		for k, x := range v {
			d.Set(k, plain(x))
		}
		return d
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
	*worker
	record
	// the dump has the times at which GPUs began calls, as with TORCH_NCCL_ENABLE_TIMING=1 only
	timed bool
	index map[string]int          // of groups, by name
	names map[*pickle.List]string // results of where, by stack: entries share stacks
}

// config reads the groups that the rank has made.
func (r *reader) config(v any) {
	groups, _ := v.(*pickle.Dict)
	for name, v := range groups.All() {
		g, _ := v.(*pickle.Dict)
		if ranks := r.list(text(g.Get("ranks"))); len(ranks) > 0 {
			r.group(name, text(g.Get("desc")), ranks)
		}
	}
	slices.SortFunc(r.groups, func(a, b hang.Group) int { return strings.Compare(a.Name, b.Name) })
	for i := range r.groups {
		r.index[r.groups[i].Name] = i
	}
}

// group is the index of a group, which is added if it is not there.
func (r *reader) group(name, desc string, ranks []int) int {
	i, ok := r.index[name]
	if !ok {
		i = len(r.groups)
		r.index[name] = i
		r.groups = append(r.groups, hang.Group{Name: r.one(name), Desc: r.one(desc), Ranks: ranks})
	}
	return i
}

// forget drops all ended calls but the newest keep.
func (r *reader) forget() {
	ended := 0
	for i := range r.calls {
		if r.calls[i].State == hang.Ended {
			ended++
		}
	}
	if drop := ended - r.keep; drop > 0 {
		r.calls = slices.DeleteFunc(r.calls, func(c hang.Call) bool {
			if c.State == hang.Ended && drop > 0 {
				drop--
				return true
			}
			return false
		})
	}
	r.calls = slices.Clip(slices.Clone(r.calls))
}

// ranksOf reads "[0, 1, 2]" or "0,1,2"; nil if that is no list of ranks.
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

// entries reads calls. Calls of a coalesced group have no state of their own: they get that of the entry that ends the
// group.
func (r *reader) entries(list []any) error {
	kept, room := len(list), r.keep
	for ; kept > 0 && room > 0; kept-- {
		if e, ok := list[kept-1].(*pickle.Dict); ok && over(e) {
			room--
		}
	}
	from := 0 // index of the first call in the coalesced group under way
	for i, v := range list {
		e, ok := v.(*pickle.Dict)
		if !ok {
			return errNone
		}
		if i < kept && over(e) {
			from = len(r.calls)
			continue
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

// over reports whether an entry is of a call by itself that has ended.
func over(e *pickle.Dict) bool {
	return text(e.Get("state")) == "completed" && !strings.HasSuffix(text(e.Get("profiling_name")), "coalesced")
}

// call reads an entry.
func (r *reader) call(e *pickle.Dict) (c hang.Call, kind string, err error) {
	pg, _ := e.Get("process_group").(*pickle.List)
	if pg == nil || len(pg.Items) == 0 {
		return c, "", fmt.Errorf("%w: an entry without process_group", errNone)
	}
	name, desc := text(pg.Items[0]), ""
	if len(pg.Items) > 1 {
		desc = text(pg.Items[1])
	}
	g := r.group(name, desc, nil)
	if r.groups[g].Desc == "" {
		r.groups[g].Desc = r.one(desc)
	}
	c = hang.Call{Group: g, Peer: -1, Where: r.where(e.Get("frames"))}
	_, kind, _ = strings.Cut(text(e.Get("profiling_name")), ":")
	kind, ends, _ := strings.Cut(kind, " ")
	c.Kind = r.one(kind)
	c.Number = number(first(e, "collective_seq_id", "seq_id"))
	if kind == "send" || kind == "recv" {
		r.message(&c, kind, ends)
		c.Number = number(first(e, "p2p_seq_id", "seq_id"))
	}
	var in, out []string
	in, c.In, c.Sizes.In = r.shapes(e.Get("input_dtypes"), e.Get("input_sizes"))
	out, c.Out, c.Sizes.Out = r.shapes(e.Get("output_dtypes"), e.Get("output_sizes"))
	if kinds := slices.Compact(append(in, out...)); len(kinds) == 1 {
		c.Type = kinds[0]
	}
	switch text(e.Get("state")) {
	case "completed":
		c.State = hang.Ended
	case "started":
		c.State = hang.Begun
	}
	r.timed = r.timed || c.State == hang.Begun || number(e.Get("time_discovered_started_ns")) > 0
	c.At, c.Ends = at(e.Get("time_created_ns")), at(e.Get("time_discovered_completed_ns"))
	c.Limit = time.Duration(min(max(0, number(e.Get("timeout_ms"))), 1<<40)) * time.Millisecond
	return c, kind, nil
}

// message reads "0->1" or "1<-0": ranks of the group.
func (r *reader) message(c *hang.Call, kind, ends string) {
	c.Send = kind == "send"
	_, peer, ok := strings.Cut(ends, map[bool]string{true: "->", false: "<-"}[c.Send])
	n, err := strconv.Atoi(peer)
	ranks := r.groups[c.Group].Ranks
	switch {
	case !ok || err != nil || n < 0:
	case n < len(ranks):
		c.Peer = ranks[n]
	case len(ranks) == 0 && n < hang.MaxRanks:
		c.Peer = n
	}
}

// where is the line of the program that made a call: the first frame outside of libraries.
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
		f, _ := v.(*pickle.Dict)
		if line = r.one(hang.Where(text(f.Get("filename")), int(number(f.Get("line"))), text(f.Get("name")))); line != "" {
			break
		}
	}
	if r.names == nil {
		r.names = map[*pickle.List]string{}
	}
	r.names[frames] = line
	return line
}

// shapes returns the types of tensors, spells them with their sizes, and counts their elements.
func (r *reader) shapes(kinds, sizes any) (k []string, spelled string, elements int64) {
	if list, ok := kinds.(*pickle.List); ok {
		for _, v := range list.Items {
			k = append(k, r.one(text(v)))
		}
	}
	var s [][]int64
	if list, ok := sizes.(*pickle.List); ok {
		for _, v := range list.Items {
			one, _ := v.(*pickle.List)
			if one == nil {
				continue
			}
			dims := make([]int64, 0, len(one.Items))
			for _, n := range one.Items {
				dims = append(dims, number(n))
			}
			s = append(s, dims)
		}
	}
	spelled, elements = hang.Shape(k, s)
	return k, r.one(spelled), elements
}

func first(e *pickle.Dict, keys ...string) any {
	for _, k := range keys {
		if v := e.Get(k); v != nil {
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
