package bench

import (
	"cmp"
	"slices"
)

// A sample is a row of one repetition.
type sample struct {
	variant string // of the program
	row     Row
}

type samples []sample

func (s *samples) add(variant string, r Row) { *s = append(*s, sample{variant, r}) }

// best is a program's row beside ours: medians of the repetitions, of the
// variant that is fastest in each form; nil if there is none.
func (s samples) best(program string, ours Row, n int) *Row {
	variants := map[string][]Row{}
	for _, x := range s {
		if x.row.Program == program && x.row.key() == ours.key() {
			variants[x.variant] = append(variants[x.variant], x.row)
		}
	}
	c, _ := find(ours.Collective)
	var best *Row
	for _, rows := range variants {
		r := rows[0]
		r.OutOfPlace = median(rows, c, n, func(r Row) *Measure { return r.OutOfPlace })
		r.InPlace = median(rows, c, n, func(r Row) *Measure { return r.InPlace })
		if best == nil {
			best = &r
			continue
		}
		best.OutOfPlace = faster(best.OutOfPlace, r.OutOfPlace)
		best.InPlace = faster(best.InPlace, r.InPlace)
	}
	return best
}

func faster(a, b *Measure) *Measure {
	if a == nil || b != nil && b.Time < a.Time {
		return b
	}
	return a
}

// median is the Measure of the median time; wrong elements of all are added up.
func median(rows []Row, c Collective, n int, form func(Row) *Measure) *Measure {
	var all []*Measure
	for _, r := range rows {
		if m := form(r); m != nil {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *Measure) int { return cmp.Compare(a.Time, b.Time) })
	mid := *all[len(all)/2]
	if len(all)%2 == 0 {
		mid.Time = (mid.Time + all[len(all)/2-1].Time) / 2
	}
	mid.Min = all[0].Time
	mid.bandwidth(c, rows[0].Size, n)
	if mid.Wrong != nil {
		sum := int64(0)
		for _, m := range all {
			sum += *m.Wrong
		}
		mid.Wrong = &sum
	}
	return &mid
}
