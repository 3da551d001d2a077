package command

import (
	"fmt"
	"slices"
	"strings"
)

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
	return fmt.Sprintf("results of %s may differ from hardware's in their last bits\n", strings.Join(r.Approximate, ", "))
}
