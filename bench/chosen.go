package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
)

// chosen lists, for each collective of a plan, the algorithms that carry it out on GPU
// memory, the largest size of each, and the plan that chose them.
func chosen(c *ringo.Comm, plan []series, registered bool) (notes []string) {
	for i := range plan {
		s := &plan[i]
		if i > 0 && plan[i-1].Name == s.Name || s.Kind == ringo.KindSend {
			continue
		}
		var algos, sizes, sources []string
		for _, count := range s.counts {
			algo, because := c.DeviceChoice(s.Kind, count*s.typ.Size(), registered)
			if source, _, _ := strings.Cut(because, ", line "); !slices.Contains(sources, source) {
				sources = append(sources, source)
			}
			if n := len(algos); n == 0 || algos[n-1] != algo {
				algos, sizes = append(algos, algo), append(sizes, "")
			}
			sizes[len(sizes)-1] = FormatSize(s.Size(count, c.Size(), s.typ.Size()))
		}
		for k := range len(algos) - 1 {
			algos[k] += " to " + sizes[k]
		}
		notes = append(notes, fmt.Sprintf("%s by %s (%s)", s.Name, strings.Join(algos, ", "), strings.Join(sources, "; ")))
	}
	return notes
}
