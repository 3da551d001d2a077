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
			if n := Distance(name, like); n <= letters {
				meant, letters = like, n-1
			}
		}
		if meant != "" {
			e.Odd = append(e.Odd, fmt.Sprintf("%s has no effect; is %s meant?", name, meant))
		}
	}
}

// Distance is how many letters must be put in, taken out, changed or swapped
// with their neighbour to turn a into b.
func Distance(a, b string) int {
	d := make([][]int, len(a)+1) // d[i][j] is of a[:i] and b[:j]
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			d[i][j] = d[i-1][j-1]
			if a[i-1] != b[j-1] {
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
