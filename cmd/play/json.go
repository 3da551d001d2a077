package play

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// Ask answers a question of the page. The question is lines of key=value: collective, algo, ranks,
// node, root, bytes, net, edits, and last table, whose value goes on to the end. The answer is
// JSON; of a wrong question it is only {"wrong": message}. The answer to "" lists the collectives,
// algorithms and nets that questions may name.
//
// encoding/json would make the module of the page a quarter larger.
func Ask(question string) []byte {
	var w writer
	if question == "" {
		w.catalogue()
		return w.b
	}
	q, err := parseQuestion(question)
	if err == nil {
		var p *Play
		if p, err = q.Answer(); err == nil {
			w.play(p)
			return w.b
		}
	}
	w.open('{')
	w.key("wrong").text(err.Error())
	w.close('}')
	return w.b
}

func parseQuestion(text string) (q Question, err error) {
	text, table, found := strings.Cut(text, "\ntable=")
	if found {
		if q.Table, err = Parse(table); err != nil {
			return q, err
		}
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		number := func(bits int) (n int64) {
			if err == nil {
				n, err = strconv.ParseInt(value, 10, bits)
			}
			return n
		}
		switch key {
		case "collective":
			q.Collective = value
		case "algo":
			q.Algo = value
		case "net":
			q.Net = value
		case "ranks":
			q.Ranks = int(number(32))
		case "node":
			q.Node = int(number(32))
		case "root":
			q.Root = sched.Rank(number(32))
		case "bytes":
			q.Bytes = number(64)
		case "edits":
			var edits []Edit
			if edits, err = ParseEdits(value); err == nil {
				q.Edits = edits
			}
		default:
			err = fmt.Errorf("question: no key %q", key)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

// A writer appends JSON. first is whether the next value is the first of its list or object.
type writer struct {
	b     []byte
	first bool
}

func (w *writer) open(c byte) {
	w.comma()
	w.b = append(w.b, c)
	w.first = true
}

func (w *writer) close(c byte) {
	w.b = append(w.b, c)
	w.first = false
}

func (w *writer) comma() {
	if !w.first && len(w.b) > 0 {
		w.b = append(w.b, ',')
	}
	w.first = false
}

func (w *writer) key(name string) *writer {
	w.text(name)
	w.b = append(w.b, ':')
	w.first = true
	return w
}

func (w *writer) text(s string) {
	w.comma()
	w.b = append(w.b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			w.b = append(w.b, '\\', byte(c))
		case c < ' ':
			w.b = fmt.Appendf(w.b, `\u%04x`, c)
		default:
			w.b = utf8.AppendRune(w.b, c)
		}
	}
	w.b = append(w.b, '"')
}

func (w *writer) number(n int) {
	w.comma()
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *writer) real(x float64) {
	w.comma()
	w.b = strconv.AppendFloat(w.b, x, 'g', -1, 64)
}

func (w *writer) yes(b bool) {
	w.comma()
	w.b = strconv.AppendBool(w.b, b)
}

// catalogue writes the collectives, algorithms and nets that questions may name.
func (w *writer) catalogue() {
	w.open('{')
	w.key("collectives").open('[')
	for _, c := range book.Collectives {
		w.open('{')
		w.key("name").text(c.Name)
		w.key("rooted").yes(c.Rooted)
		w.key("algorithms").open('[')
		for _, a := range c.Algorithms {
			w.open('{')
			w.key("name").text(a.Name)
			w.key("nodes").yes(a.Nodes != nil)
			w.close('}')
		}
		w.close(']')
		w.close('}')
	}
	w.close(']')
	w.key("nets").open('[')
	for _, name := range slices.Sorted(maps.Keys(sim.Presets)) {
		w.open('{')
		w.key("name").text(name)
		w.key("title").text(sim.Presets[name].Name)
		w.key("node").number(sim.Presets[name].NodeRanks)
		w.close('}')
	}
	w.close(']')
	w.key("most").number(Most)
	w.close('}')
}

// play writes an answer. A value is [chunk, ranks as Set, text]; steps refer to values by index.
// A step is [turn, hops, recv, send, buffer of src, chunk of src, buffer of dst, chunk of dst,
// value, text, start, end, wait for a message, wait for room]; the last four are seconds, and are
// absent if the model has none. A number that a step does not have is -1.
func (w *writer) play(p *Play) {
	shape := p.Table.Shape()
	w.open('{')
	w.key("goal").text(p.Goal.String())
	w.key("sums").yes(p.Goal.Sums())
	w.key("shape").open('[')
	for _, n := range []int{shape.Ranks, shape.In, shape.Out, shape.Tmp} {
		w.number(n)
	}
	w.close(']')
	w.ranks("gives", p.Goal.Gives, shape.Ranks)
	w.ranks("gets", p.Goal.Gets, shape.Ranks)
	w.key("turns").number(p.Turns)
	w.values(w.steps(p))
	if p.Err != nil {
		w.key("error").text(p.Err.Error())
		w.key("places").open('[')
		for _, at := range p.Places() {
			w.open('{')
			w.key("rank").number(int(at.Rank))
			w.key("step").number(at.Step)
			w.key("out").number(at.Out)
			w.key("why").text(at.Why)
			w.close('}')
		}
		w.close(']')
	}
	w.key("model").text(p.Model)
	if p.SimErr == nil {
		w.key("time").real(p.Time)
		w.key("rounds").number(p.Rounds)
	} else {
		w.key("endless").text(p.SimErr.Error())
	}
	w.close('}')
}

// steps writes the steps of all ranks, and returns the values that they refer to, by index.
func (w *writer) steps(p *Play) (list []sched.Value) {
	values := map[sched.Value]int{}
	w.key("steps").open('[')
	for _, row := range p.Steps {
		w.open('[')
		for _, s := range row {
			value := -1
			if s.Turn >= 0 {
				var ok bool
				if value, ok = values[s.Value]; !ok {
					value = len(list)
					values[s.Value] = value
					list = append(list, s.Value)
				}
			}
			w.step(s, value)
		}
		w.close(']')
	}
	w.close(']')
	return list
}

// values writes the values of an answer, by index.
func (w *writer) values(list []sched.Value) {
	w.key("values").open('[')
	for _, v := range list {
		w.open('[')
		w.number(v.Chunk())
		w.text(Set(v.From()))
		w.text(v.String())
		w.close(']')
	}
	w.close(']')
}

func (w *writer) ranks(key string, has func(sched.Rank) bool, n int) {
	var list []sched.Rank
	for r := range sched.Rank(n) {
		if has(r) {
			list = append(list, r)
		}
	}
	w.key(key).text(Set(list))
}

func (w *writer) step(s Step, value int) {
	w.open('[')
	for _, n := range []int{s.Turn, s.Hops, int(s.Recv), int(s.Send), int(s.Src.Buf), int(s.Src.Chunk), int(s.Dst.Buf),
		int(s.Dst.Chunk), value} {
		w.number(n)
	}
	w.text(s.Step.String())
	if t := s.Time; t != nil {
		for _, x := range []float64{t.Start, t.End, t.Recv, t.Send} {
			w.real(x)
		}
	}
	w.close(']')
}

// Set is a set of ranks as a number of 64 bits in hex; rank 0 is the lowest bit. Ranks are below Most.
func Set(ranks []sched.Rank) string {
	var set uint64
	for _, r := range ranks {
		set |= 1 << r
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, set))
}
