package command

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// newestAttempt leaves out what earlier attempts of the job have left, but for dumps, which tell attempts apart
// themselves. The newest attempt is that of the newest call in dumps, or else has the highest number. A note says it.
func (g *whyFiles) newestAttempt(jobs []whyJob) (notes []string) {
	lists := []*[]string{&g.own, &g.answers, &g.logs, &g.texts, &g.perf, &g.stacks}
	newest, told, at := -1, false, time.Time{}
	for _, list := range lists {
		for _, file := range *list {
			newest = max(newest, hang.AttemptOf(file))
		}
	}
	for _, j := range jobs {
		for _, r := range j.Ranks {
			for _, c := range r.Calls {
				if n := hang.AttemptOf(r.Source); j.says == flightSays && n >= 0 && c.At.After(at) {
					newest, told, at = n, true, c.At
				}
			}
		}
	}
	left := map[int]int{}
	for _, list := range lists {
		*list = slices.DeleteFunc(*list, func(file string) bool {
			n := hang.AttemptOf(file)
			if n < 0 || n == newest {
				return false
			}
			left[n]++
			return true
		})
	}
	why := map[bool]string{true: "the newest calls", false: "the highest number"}[told]
	for n, files := range left {
		notes = append(notes, fmt.Sprintf("files of attempt_%d, left out as attempt_%d has %s: %d", n, newest, why, files))
	}
	slices.Sort(notes)
	return notes
}
