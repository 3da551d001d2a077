package sched

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// String is the buffer's name.
func (b Buffer) String() string {
	switch b {
	case None:
		return "None"
	case In:
		return "In"
	case Out:
		return "Out"
	case Tmp:
		return "Tmp"
	default:
		return fmt.Sprintf("Buffer(%d)", uint8(b))
	}
}

// String is the chunk as Format writes it, Out[3]; no memory is empty.
func (r Ref) String() string {
	if r.Buf == None {
		return ""
	}
	return fmt.Sprintf("%v[%d]", r.Buf, r.Chunk)
}

// value is where v of a step comes from.
func (t Step) value() string {
	switch {
	case t.Recv == Nobody:
		return t.Src.String()
	case t.Src.Buf == None:
		return fmt.Sprintf("from %d", t.Recv)
	default:
		return fmt.Sprintf("from %d ⊕ %v", t.Recv, t.Src)
	}
}

// String is the step in a line: from 3 ⊕ In[2] → Out[2] → 1.
func (t Step) String() string {
	s := t.value()
	if t.Dst.Buf != None {
		s += " → " + t.Dst.String()
	}
	if t.Send != Nobody {
		s += fmt.Sprintf(" → %d", t.Send)
	}
	return s
}

// Format writes the table of every rank: for each step its value, where the
// rank keeps it and to which rank it goes.
func Format(s Schedule) string {
	var b strings.Builder
	shape := s.Shape()
	fmt.Fprintf(&b, "%d ranks; chunks: %d in, %d out", shape.Ranks, shape.In, shape.Out)
	if shape.Tmp > 0 {
		fmt.Fprintf(&b, ", %d tmp", shape.Tmp)
	}
	b.WriteByte('\n')
	for r := range Rank(shape.Ranks) {
		rows := [][4]string{{fmt.Sprintf("rank %d", r), "value", "keep", "send"}}
		for i := range s.Len(r) {
			t := s.At(r, i)
			row := [4]string{fmt.Sprintf("%d", i), t.value(), t.Dst.String()}
			if t.Send != Nobody {
				row[3] = fmt.Sprintf("to %d", t.Send)
			}
			rows = append(rows, row)
		}
		b.WriteByte('\n')
		writeTable(&b, rows)
	}
	return b.String()
}

// writeTable writes rows with columns as wide as their widest cell, the first
// one to the right.
func writeTable(b *strings.Builder, rows [][4]string) {
	var width [4]int
	for _, row := range rows {
		for c, cell := range row {
			width[c] = max(width[c], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for c, cell := range row {
			pad := strings.Repeat(" ", width[c]-utf8.RuneCountInString(cell))
			if c == 0 {
				line += pad + cell
			} else {
				line += "  " + cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
