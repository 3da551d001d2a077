package play

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/sched"
)

// A Table is a schedule written out step by step, to be changed or carried to a page.
type Table struct {
	shape sched.Shape
	rows  [][]sched.Step // of each rank
}

// TableOf writes a schedule out.
func TableOf(s sched.Schedule) *Table {
	t := &Table{shape: s.Shape(), rows: make([][]sched.Step, s.Shape().Ranks)}
	for r := range t.rows {
		for i := range s.Len(sched.Rank(r)) {
			t.rows[r] = append(t.rows[r], s.At(sched.Rank(r), i))
		}
	}
	return t
}

// Shape is the shape of the schedule.
func (t *Table) Shape() sched.Shape { return t.shape }

// Len is the number of steps of rank r.
func (t *Table) Len(r sched.Rank) int { return len(t.rows[r]) }

// At is step i of rank r.
func (t *Table) At(r sched.Rank, i int) sched.Step { return t.rows[r][i] }

// String is the table as Parse reads it: a line with the shape, and a line for each rank with its
// steps as recv,send,src,dst. A step without a peer or memory has an empty word there.
func (t *Table) String() string {
	b := fmt.Appendf(nil, "%d %d %d %d", t.shape.Ranks, t.shape.In, t.shape.Out, t.shape.Tmp)
	peer := func(r sched.Rank) {
		if r != sched.Nobody {
			b = strconv.AppendInt(b, int64(r), 10)
		}
		b = append(b, ',')
	}
	memory := func(ref sched.Ref) {
		if ref.Buf != sched.None {
			b = append(b, buffers[ref.Buf])
			b = strconv.AppendInt(b, int64(ref.Chunk), 10)
		}
	}
	for _, row := range t.rows {
		b = append(b, '\n')
		for i, s := range row {
			if i > 0 {
				b = append(b, ' ')
			}
			peer(s.Recv)
			peer(s.Send)
			memory(s.Src)
			b = append(b, ',')
			memory(s.Dst)
		}
	}
	return string(b)
}

const buffers = "-iot" // by sched.Buffer

// Most is the greatest number of ranks that can be played.
const Most = 64

// Parse reads a table as String writes it, of at most Most ranks and 4,096 chunks in a buffer.
func Parse(text string) (*Table, error) {
	lines := strings.Split(text, "\n")
	t := &Table{}
	shape, ok := numbers(lines[0], 4)
	if !ok {
		return nil, fmt.Errorf("table: shape %q: want ranks and chunks in, out and tmp", lines[0])
	}
	t.shape = sched.Shape{Ranks: shape[0], In: shape[1], Out: shape[2], Tmp: shape[3]}
	if n := t.shape.Ranks; n < 1 || n > Most || n != len(lines)-1 ||
		max(t.shape.In, t.shape.Out, t.shape.Tmp) > Most*Most || min(t.shape.In, t.shape.Out, t.shape.Tmp) < 0 {
		return nil, fmt.Errorf("table: shape %+v with %d rows: want 1 to %d ranks, each with a row", t.shape, len(lines)-1,
			Most)
	}
	for r, line := range lines[1:] {
		var row []sched.Step
		for _, word := range strings.Fields(line) {
			s, err := parseStep(word)
			if err != nil {
				return nil, fmt.Errorf("table: rank %d step %d: %w", r, len(row), err)
			}
			row = append(row, s)
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

func parseStep(word string) (s sched.Step, err error) {
	f := strings.Split(word, ",")
	if len(f) != 4 {
		return s, fmt.Errorf("%q: want recv,send,src,dst", word)
	}
	number := func(text string) int32 {
		n, e := strconv.ParseInt(text, 10, 32)
		if e != nil {
			err = e
		}
		return int32(n)
	}
	peer := func(text string) sched.Rank {
		if text == "" {
			return sched.Nobody
		}
		return sched.Rank(number(text))
	}
	memory := func(text string) (ref sched.Ref) {
		if text == "" {
			return ref
		}
		at := strings.IndexByte(buffers, text[0])
		if at < 1 {
			err = fmt.Errorf("%q is no chunk", text)
			return ref
		}
		return sched.Ref{Buf: sched.Buffer(at), Chunk: number(text[1:])}
	}
	s = sched.Step{Recv: peer(f[0]), Send: peer(f[1]), Src: memory(f[2]), Dst: memory(f[3])}
	return s, err
}

// An Edit changes a table: it drops a step, or swaps two steps of one rank.
type Edit struct {
	Rank sched.Rank
	Step int
	With int // -1 to drop Step
}

// String is the edit as ParseEdits reads it.
func (e Edit) String() string {
	if e.With < 0 {
		return fmt.Sprintf("drop %d %d", e.Rank, e.Step)
	}
	return fmt.Sprintf("swap %d %d %d", e.Rank, e.Step, e.With)
}

// ParseEdits reads edits that are separated by semicolons.
func ParseEdits(text string) (edits []Edit, err error) {
	for one := range strings.SplitSeq(text, ";") {
		if one == "" {
			continue
		}
		what, at, _ := strings.Cut(one, " ")
		n, ok := numbers(at, 3)
		switch {
		case what == "swap" && ok:
			edits = append(edits, Edit{sched.Rank(n[0]), n[1], n[2]})
			continue
		case what == "drop":
			if n, ok = numbers(at, 2); ok {
				edits = append(edits, Edit{sched.Rank(n[0]), n[1], -1})
				continue
			}
		}
		return nil, fmt.Errorf("edit %q: want drop RANK STEP, or swap RANK STEP STEP", one)
	}
	return edits, nil
}

// numbers reads count numbers of 0 or more, with a blank between them.
func numbers(text string, count int) (list []int, ok bool) {
	for word := range strings.SplitSeq(text, " ") {
		n, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, false
		}
		list = append(list, int(n))
	}
	return list, len(list) == count
}

// Edit is the table after edits, which are made one after the other. t itself does not change. It is an error if an
// edit names a step that is not there.
func (t *Table) Edit(edits []Edit) (*Table, error) {
	t = &Table{t.shape, slices.Clone(t.rows)}
	for _, e := range edits {
		if e.Rank < 0 || int(e.Rank) >= len(t.rows) || e.Step < 0 || max(e.Step, e.With) >= len(t.rows[e.Rank]) {
			return nil, fmt.Errorf("edit %q: there is no such step", e)
		}
		row := slices.Clone(t.rows[e.Rank])
		if e.With < 0 {
			row = slices.Delete(row, e.Step, e.Step+1)
		} else {
			row[e.Step], row[e.With] = row[e.With], row[e.Step]
		}
		t.rows[e.Rank] = row
	}
	return t, nil
}
