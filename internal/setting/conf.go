package setting

import (
	"iter"
	"strings"
)

// Conf gives the names and values of an nccl.conf in their order; of several values of a name the first counts. A line
// is NAME=VALUE, with all its blanks. Lines that begin with #, or are without =, are skipped.
func Conf(text string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			name, value, ok := strings.Cut(line, "=")
			if ok && name != "" && line[0] != '#' && !yield(name, value) {
				return
			}
		}
	}
}
