package setting

import (
	"fmt"
	"strings"
)

// Misspelt takes note of variables of our own that nobody reads, and whose names are nearly one of known's. environ has
// them as NAME=VALUE.
func (e *Environment) Misspelt(known, environ []string) {
	const ours = "RINGO_"
	names := map[string]bool{}
	for _, name := range known {
		names[name] = true
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, ours) || names[name] || e.Get(name) == "" {
			continue
		}
		letters := 2 // may differ
		if len(name) <= len(ours)+4 {
			letters = 1
		}
		meant := ""
		for _, like := range known {
			if n := distance(name, like); n <= letters {
				meant, letters = like, n-1
			}
		}
		if meant != "" {
			e.Odd = append(e.Odd, fmt.Sprintf("%s has no effect; is %s meant?", name, meant))
		}
	}
}

// distance is how many letters must come, go or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from the letters of a so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // from a[:i] to b[:j-1]
		row[0] = i + 1
		for j := 1; j <= len(b); j++ {
			change := before
			if a[i] != b[j-1] {
				change++
			}
			before = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
