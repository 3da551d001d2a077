package bench

import "slices"

// samples are the rows of all repetitions by program, variant and case.
type samples map[string]map[string]map[rowKey][]Row

func (s samples) add(program, variant string, r Row) {
	if s[program] == nil {
		s[program] = map[string]map[rowKey][]Row{}
	}
	if s[program][variant] == nil {
		s[program][variant] = map[rowKey][]Row{}
	}
	s[program][variant][r.key()] = append(s[program][variant][r.key()], r)
}

// best is a program's row beside ours: medians of the repetitions, of the
// variant that is fastest in each form; nil if there is none.
func (s samples) best(program string, ours Row, n int) *Row {
	var best *Row
	for _, byCase := range s[program] {
		rows := byCase[ours.key()]
		if len(rows) == 0 {
			continue
		}
		c, _ := find(ours.Collective)
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
	slices.SortFunc(all, func(a, b *Measure) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
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
