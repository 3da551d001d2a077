package setting

import (
	"iter"
	"strings"
)

// Conf gives the names and values of an nccl.conf in their order, of which the first of a name counts. A line is
// NAME=VALUE, as it is, blanks included; one with # in front and one without = say nothing.
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
