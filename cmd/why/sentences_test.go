package why

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// disagrees matches sentences in which number and verb do not agree, or a rank is many.
var disagrees = []*regexp.Regexp{
	regexp.MustCompile(`rank \d+ (have|are|were|wait|do|stand|call|all) `),
	regexp.MustCompile(`ranks [0-9, ]+ and \d+ (has|is|was|waits|does|stands|calls|it|its)\b`),
	regexp.MustCompile(`ranks [0-9, ]+ and \d+ [^;:]*(\bit was\b|its GPU|what it called|it calls|it called)`),
	regexp.MustCompile(`(^|; |: |and )rank \d+ [^;:]*(\bthey\b|their GPUs)`),
}

// files have a number of their own.
var files = regexp.MustCompile(`files of ranks? [0-9, and]+`)

// Sentences about one rank, and about three, are English.
func TestSentences(t *testing.T) {
	const late = 12 * time.Minute
	said := map[hang.Reason]int{}
	for _, odd := range [][]int{{6}, {4, 5, 6}} {
		is := func(r int) bool { return r >= odd[0] }
		job := func(last time.Duration) *hang.Job {
			even, of := make([]time.Duration, 7), make([]time.Duration, 7)
			for r := range of {
				if is(r) {
					of[r] = last
				}
			}
			return paced(10*time.Minute, even, even, even, even, of)
		}
		each := func(j *hang.Job, change func(r *hang.Rank)) *hang.Job {
			for _, r := range odd {
				change(&j.Ranks[r])
			}
			return j
		}
		last := func(r *hang.Rank) *hang.Call { return &r.Calls[len(r.Calls)-1] }
		open := func(j *hang.Job) *hang.Job {
			for r := range j.Ranks {
				last(&j.Ranks[r]).State = hang.Open
			}
			return j
		}
		kinds := func(j *hang.Job, of func(r int) []string) *hang.Job {
			for r := range j.Ranks {
				for i, kind := range of(r) {
					c := *last(&j.Ranks[r])
					c.Number, c.Kind, c.State, c.At = int64(4+i), kind, hang.Begun, c.At.Add(time.Duration(i))
					j.Ranks[r].Calls = append(j.Ranks[r].Calls[:3+i:3+i], c)
				}
			}
			return j
		}
		choose := func(a, b []string) func(int) []string {
			return func(r int) []string {
				if is(r) {
					return b
				}
				return a
			}
		}
		jobs := map[string]*hang.Job{
			"absent": job(-1), "slow": job(late), "stuck": job(0), "alike": open(job(0)),
			"young":     seen(job(-1), hang.FileTime, time.Millisecond),
			"many late": paced(time.Minute, make([]time.Duration, 3), make([]time.Duration, 3), []time.Duration{0, -1, -1}),
			"mute":      each(job(-1), func(r *hang.Rank) { r.Source, r.Calls, r.Mute = "", nil, true }),
			"missing":   each(job(-1), func(r *hang.Rank) { r.Source, r.Calls = "", nil }),
			"blocked":   each(job(0), func(r *hang.Rank) { last(r).State = hang.Called }),
			"died":      each(job(-1), func(r *hang.Rank) { r.Death = "was killed by SIGKILL" }),
			"stands":    each(job(-1), func(r *hang.Rank) { r.Stack = "train.py:31 in batches" }),
			"old":       each(ended(job(-1)), func(r *hang.Rank) { r.Calls = r.Calls[:2] }),
			"shapes":    each(job(0), func(r *hang.Rank) { last(r).In, last(r).Sizes.In = "Float[7]", 7 }),
			"kind":      each(job(0), func(r *hang.Rank) { last(r).Kind = "broadcast" }),
			"left out":  kinds(job(0), choose([]string{"all_reduce", "broadcast", "barrier"}, []string{"broadcast", "barrier"})),
			"one more":  kinds(job(0), choose([]string{"broadcast", "barrier"}, []string{"all_reduce", "broadcast", "barrier"})),
		}
		for r := range jobs["shapes"].Ranks {
			if c := last(&jobs["shapes"].Ranks[r]); c.In == "" {
				c.In, c.Sizes.In = "Float[8]", 8
			}
		}
		for name, j := range jobs {
			a := hang.Judge(j)
			said[a.Reason]++
			texts := append([]string{a.Sentence, a.Remedy}, a.Notes...)
			for _, c := range a.Classes {
				texts = append(texts, c.Is)
			}
			for _, text := range texts {
				text = files.ReplaceAllString(text, "files")
				for _, wrong := range disagrees {
					require.NotRegexp(t, wrong, text, name)
				}
			}
		}
		a := hang.Judge(job(-1))
		see := map[int]string{1: "see what rank 6 does there", 3: "see what ranks 4, 5 and 6 do there"}[len(odd)]
		require.Contains(t, a.Remedy, see)
	}
	for _, r := range strings.Fields("absent slow stuck unknown died different shapes blocked silent") {
		found := false
		for reason := range said {
			found = found || reason.String() == r
		}
		require.True(t, found, "no sentence of %s", r)
	}
}
