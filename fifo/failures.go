package fifo

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
)

// failures remembers which items failed and why, long after their slots are
// used again, so that success costs nothing. Neighbours with one cause, such as
// all items after an abort, are one entry.
type failures struct {
	runs      []failure // by item
	forgotten uint64    // results of items before this one are no longer known
}

type failure struct {
	first, end uint64 // items first ≤ i < end
	err        error
}

// maxFailures bounds the memory of a user who goes on after failures. Whoever
// asks later than this many failures of different causes is told so.
const maxFailures = 1024

// add notes that the items first ≤ i < end failed. Items come in order.
func (f *failures) add(first, end uint64, err error) {
	if n := len(f.runs); n > 0 && f.runs[n-1].end == first && same(f.runs[n-1].err, err) {
		f.runs[n-1].end = end
		return
	}
	if len(f.runs) == maxFailures {
		f.forgotten = f.runs[maxFailures/2-1].end
		f.runs = slices.Delete(f.runs, 0, maxFailures/2)
	}
	f.runs = append(f.runs, failure{first, end, err})
}

// of is the error of the first failed item among first ≤ i < end, or nil.
func (f *failures) of(first, end uint64) error {
	if first < f.forgotten {
		return fmt.Errorf("work fifo: result of item %d forgotten: more than %d items failed after it; wait for each item soon", first, maxFailures/2)
	}
	k := sort.Search(len(f.runs), func(k int) bool { return f.runs[k].end > first })
	if k < len(f.runs) && f.runs[k].first < end {
		return f.runs[k].err
	}
	return nil
}

// same reports whether two errors are one value. Errors need not be comparable.
func same(a, b error) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
