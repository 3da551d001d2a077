package hangs

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// versions are those of the flight recorder's dumps.
var versions = []string{"2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11"}

// minor is the second number of a version.
func minor(version string) (n int) {
	fmt.Sscanf(version, "2.%d", &n)
	return n
}

// dump is the content of a rank's flight recorder at a time. room is the number of entries in its ring.
func (j *job) dump(r int, version string, at time.Duration, room int) map[string]any {
	m := minor(version)
	calls := j.seen(r, at)
	config, status := map[string]any{}, map[string]any{}
	for g, ranks := range j.groups {
		if !slices.Contains(ranks, r) || slices.Contains(j.ranks[r].unmade, g) {
			continue
		}
		one := map[string]any{"ranks": list(ranks), "desc": desc(g)}
		if m >= 1 {
			one["name"] = fmt.Sprint(g)
		}
		config[fmt.Sprint(g)] = one
		last := int64(0)
		for _, c := range calls {
			if c.group == g && c.peer < 0 {
				last = c.number
			}
		}
		started := last
		if !j.timed {
			started = -1
		}
		status[fmt.Sprint(g)] = map[string]any{"last_enqueued_collective": last, "last_started_collective": started,
			"last_completed_collective": max(0, last-1)}
	}
	entries := []any{}
	for i, c := range calls {
		if i < len(calls)-room {
			continue
		}
		entries = append(entries, j.entry(r, i, &c, m))
	}
	d := map[string]any{"version": version, "pg_config": config, "entries": entries}
	if m >= 4 {
		d["pg_status"] = status
	}
	switch {
	case m >= 10:
		d["comm_lib_version"] = "2.27.5"
	case m >= 3:
		d["nccl_version"] = "2.21.5"
	}
	if m >= 5 {
		d["nccl_comm_state"] = map[string]any{"0xdeadbeef": map[string]any{"rank": fmt.Sprint(r)}}
	}
	return d
}

func desc(g int) string {
	if g == 0 {
		return "default_pg"
	}
	return fmt.Sprintf("mesh_%d", g)
}

func list(ranks []int) string {
	var words []string
	for _, r := range ranks {
		words = append(words, fmt.Sprint(r))
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// entry is a call as the recorder has it.
func (j *job) entry(r, i int, c *call, m int) map[string]any {
	stamp := func(d time.Duration) any {
		if d == never {
			return nil
		}
		return j.start.Add(d + j.ranks[r].skew).UnixNano()
	}
	state := "completed"
	switch {
	case c.begun == never || c.ended == never && !j.timed:
		state = "scheduled"
	case c.ended == never:
		state = "started"
	}
	begun := c.begun
	if !j.timed {
		begun = never
	}
	name := "nccl:" + c.kind
	if c.peer >= 0 {
		ranks := j.groups[c.group]
		self, other := slices.Index(ranks, r), slices.Index(ranks, c.peer)
		name = fmt.Sprintf("nccl:%s %d%s%d", c.kind, self, map[bool]string{true: "->", false: "<-"}[c.send], other)
	}
	file, rest, _ := strings.Cut(c.line, ":")
	var line int64
	var function string
	fmt.Sscanf(rest, "%d in %s", &line, &function)
	e := map[string]any{
		"record_id": int64(i), "pg_id": int64(c.group), "process_group": []any{fmt.Sprint(c.group), desc(c.group)},
		"op_id": int64(i + 1), "profiling_name": name,
		"time_created_ns": stamp(c.at), "state": state,
		"input_sizes": []any{[]any{c.size}}, "output_sizes": []any{[]any{c.size}},
		"time_discovered_started_ns": stamp(begun), "time_discovered_completed_ns": stamp(c.ended),
		"retired": c.ended != never,
		"frames": []any{
			frame{"all_reduce", "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", 2938},
			frame{"wrapper", "/opt/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py", 81},
			frame{function, "/home/u/" + file, line}, frame{"<module>", "/home/u/main.py", 12},
		},
	}
	number := "collective_seq_id"
	if c.peer >= 0 {
		number = "p2p_seq_id"
	}
	if m < 2 {
		number = "seq_id"
	} else {
		e["collective_seq_id"], e["p2p_seq_id"] = int64(0), int64(0)
		e["is_p2p"] = c.peer >= 0
	}
	e[number] = c.number
	if m >= 1 {
		e["input_dtypes"], e["output_dtypes"] = []any{"Float"}, []any{"Float"}
	}
	if m >= 3 {
		e["timeout_ms"] = j.limit.Milliseconds()
	}
	if m >= 8 {
		e["thread_id"], e["thread_name"] = fmt.Sprint(139000000+r), "pt_main_thread"
	}
	return e
}

// A frame is a line of a stack. PyTorch writes one that comes again out of the memo.
type frame struct {
	Name string `json:"name"`
	File string `json:"filename"`
	Line int64  `json:"line"`
}

// Pickle writes values as PyTorch's C++ does: protocol 2, text and frames that come again out of the memo.
func Pickle(v any) []byte {
	p := pickler{b: []byte{0x80, 2}, memo: map[any]int{}}
	p.write(v)
	return append(p.b, '.')
}

type pickler struct {
	b    []byte
	memo map[any]int // texts and frames
}

// again writes a value that has been stored, and reports whether it has.
func (p *pickler) again(v any) bool {
	i, ok := p.memo[v]
	if ok {
		p.place('h', 'j', i)
	}
	return ok
}

// store puts the value that was just written into the memo.
func (p *pickler) store(v any) {
	p.memo[v] = len(p.memo)
	p.place('q', 'r', p.memo[v])
}

func (p *pickler) text(s string) {
	if p.again(s) {
		return
	}
	p.b = binary.LittleEndian.AppendUint32(append(p.b, 'X'), uint32(len(s)))
	p.b = append(p.b, s...)
	p.store(s)
}

func (p *pickler) place(short, long byte, i int) {
	if i < 256 {
		p.b = append(p.b, short, byte(i))
	} else {
		p.b = binary.LittleEndian.AppendUint32(append(p.b, long), uint32(i))
	}
}

func (p *pickler) write(v any) {
	switch v := v.(type) {
	case nil:
		p.b = append(p.b, 'N')
	case bool:
		p.b = append(p.b, map[bool]byte{true: 0x88, false: 0x89}[v])
	case int:
		p.write(int64(v))
	case int64:
		switch {
		case v >= 0 && v < 1<<8:
			p.b = append(p.b, 'K', byte(v))
		case v >= 0 && v < 1<<16:
			p.b = binary.LittleEndian.AppendUint16(append(p.b, 'M'), uint16(v))
		case v == int64(int32(v)):
			p.b = binary.LittleEndian.AppendUint32(append(p.b, 'J'), uint32(v))
		default:
			p.b = binary.LittleEndian.AppendUint64(append(p.b, 0x8a, 8), uint64(v))
		}
	case float64:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 'G'), math.Float64bits(v))
	case string:
		p.text(v)
	case frame:
		if !p.again(v) {
			p.write(map[string]any{"name": v.Name, "filename": v.File, "line": v.Line})
			p.store(v)
		}
	case []any:
		p.b = append(p.b, ']', '(')
		for _, x := range v {
			p.write(x)
		}
		p.b = append(p.b, 'e')
	case map[string]any:
		p.b = append(p.b, '}', '(')
		for k, x := range v {
			p.text(k)
			p.write(x)
		}
		p.b = append(p.b, 'u')
	default:
		panic(fmt.Sprintf("%T", v))
	}
}

// written is a dump as a pickle or as JSON.
func written(d map[string]any, asJSON bool) []byte {
	if !asJSON {
		return Pickle(d)
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return b
}
