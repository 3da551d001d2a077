package command

import (
	"fmt"
	"slices"
	"strings"
)

// mostApproximate is how many of them the line names.
const mostApproximate = 12

// approximated adds instructions and functions of kernels whose results may differ from a GPU's in their last bits.
func (r *emulateReport) approximated(names []string) {
	for _, name := range names {
		if i, found := slices.BinarySearch(r.Approximate, name); !found {
			r.Approximate = slices.Insert(r.Approximate, i, name)
		}
	}
}

// approximate is a line about them.
func (r *emulateReport) approximate() string {
	if len(r.Approximate) == 0 {
		return ""
	}
	names, more := r.Approximate, ""
	if n := len(names) - mostApproximate; n > 0 {
		names, more = names[:mostApproximate], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("results of %s%s may differ from hardware's in their last bits\n", strings.Join(names, ", "), more)
}
