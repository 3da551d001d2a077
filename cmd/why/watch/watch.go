// Package watch looks at a living job again and again. It is silent while all is well, and says which rank holds up
// which when ranks stand still. It is part of the command ringo, and nothing here is promised to other modules.
package watch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/trace/history"
)

// A Look is the result of one look at a job. Its Answer has reason Nothing if no rank waits.
type Look struct {
	Answer hang.Answer
	Moves  bool            // ranks have called more since the look before
	Behind []int           // ranks that others wait for now, though the job may move
	Late   []hang.Lateness // how late ranks usually are, by their files
}

// A Source is a way to look at a job. Look is called from one goroutine, and ends when its context does.
type Source struct {
	Name string
	Look func(context.Context) (Look, error)
}

// A Watcher looks at a job until its context ends. Its fields are not changed after Run has begun.
type Watcher struct {
	Sources []Source
	Every   time.Duration // between two looks
	Stall   time.Duration // how long ranks stand still before Run says so
	Out     io.Writer
	Page    bool   // Out is a terminal, drawn anew after each look; else each piece of news is a line
	Poke    func() // asks the ranks for dumps, once they stand still; nil if they cannot be asked

	states []state
}

// patience is how many times Stall a job with nobody to blame may stand still before Run says so: the job may compute,
// or write a checkpoint.
const patience = 10

// A state is what one source has shown so far.
type state struct {
	look   Look
	looked time.Time
	key    string // of the answer: the same while the job stands still in the same call
	since  time.Time
	told   bool
	poked  bool
	failed int
	err    error
	late   hour
}

// seen is a look of a source, or its error.
type seen struct {
	source int
	look   Look
	err    error
}

// Run looks through all sources until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	w.states = make([]state, len(w.Sources))
	news := make(chan seen)
	var all sync.WaitGroup
	defer all.Wait()
	for i, s := range w.Sources {
		all.Go(func() {
			for ctx.Err() == nil {
				look, err := s.Look(ctx)
				select {
				case news <- seen{i, look, err}:
				case <-ctx.Done():
				}
				select {
				case <-time.After(w.Every):
				case <-ctx.Done():
				}
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-news:
			if ctx.Err() != nil {
				return
			}
			w.heard(s)
			if w.Page {
				w.draw()
			}
		}
	}
}

// heard takes in a look.
func (w *Watcher) heard(s seen) {
	st, now := &w.states[s.source], time.Now()
	if s.err != nil {
		st.err = s.err
		if st.failed++; st.failed == 2 { // a single error may be an accident
			w.say(s.source, "%v", s.err)
		}
		return
	}
	if st.failed > 1 {
		w.say(s.source, "answers again")
	}
	st.failed, st.err = 0, nil
	st.look, st.looked = s.look, now
	st.late.add(now, s.look.Behind)
	key := s.look.Answer.Sentence // which has the number of the call
	stands := !s.look.Moves && s.look.Answer.Reason != hang.Nothing
	if !stands || key != st.key {
		if st.told && !stands {
			w.say(s.source, "the job moves again, after %v", history.Spell(now.Sub(st.since)))
		}
		st.key, st.since, st.told, st.poked = key, now, false, false
	}
	if !stands {
		return
	}
	bound := w.Stall
	if len(s.look.Answer.Culprits) == 0 {
		bound *= patience
	}
	stood := now.Sub(st.since)
	if stood >= w.Stall && !st.poked && w.Poke != nil {
		st.poked = true
		w.Poke()
	}
	if stood >= bound && !st.told {
		st.told = true
		w.tell(s.source, stood)
	}
}

// tell says that a job stands still.
func (w *Watcher) tell(source int, stood time.Duration) {
	st := &w.states[source]
	a := &st.look.Answer
	w.say(source, "stands still since %v: %s", history.Spell(stood), a.Sentence)
	if a.Remedy != "" {
		w.say(source, "remedy: %s", a.Remedy)
	}
	if text := st.usual(); text != "" {
		w.say(source, "%s", text)
	}
}

// usual says which rank is usually late, "" if none is known to be.
func (st *state) usual() string {
	if rank, share := st.late.most(); share >= 0.05 {
		return fmt.Sprintf("rank %d was the last, or among the last, in %.0f%% of the looks of the last hour", rank,
			100*share)
	}
	if len(st.look.Late) > 0 && st.look.Late[0].Calls > 2 {
		l := st.look.Late[0]
		return fmt.Sprintf("rank %d has come last most often: %d times, %v after the first", l.Rank, l.Calls,
			history.Spell(l.Late))
	}
	return ""
}

// say writes a piece of news as a line, unless a page shows it.
func (w *Watcher) say(source int, format string, args ...any) {
	if w.Page {
		return
	}
	fmt.Fprintf(w.Out, "%s %s: %s\n", time.Now().Format(time.TimeOnly), w.Sources[source].Name,
		fmt.Sprintf(format, args...))
}

// draw writes the page with the state of all sources.
func (w *Watcher) draw() {
	fmt.Fprintf(w.Out, "\x1b[H\x1b[2Jringo why -watch, %s; control-C ends it\n", time.Now().Format(time.TimeOnly))
	for i := range w.states {
		st := &w.states[i]
		fmt.Fprintf(w.Out, "\n%s: ", w.Sources[i].Name)
		switch {
		case st.failed > 0:
			fmt.Fprintf(w.Out, "%v\n", st.err)
			continue
		case st.looked.IsZero():
			fmt.Fprintln(w.Out, "not looked at yet")
			continue
		case st.told:
			fmt.Fprintf(w.Out, "stands still since %v\n\n", history.Spell(time.Since(st.since)))
			if err := st.look.Answer.Print(w.Out); err != nil {
				return
			}
		default:
			fmt.Fprintf(w.Out, "all is well with %d ranks\n", st.look.Answer.Ranks)
		}
		if text := st.usual(); text != "" {
			fmt.Fprintln(w.Out, text)
		}
	}
}

// An hour counts, minute by minute, the looks at which a rank was behind.
type hour struct {
	minutes [60]minute
}

type minute struct {
	at     int64 // minutes since 1970
	looks  int
	behind map[int]int
}

func (h *hour) add(now time.Time, ranks []int) {
	at := now.Unix() / 60
	m := &h.minutes[at%60]
	if m.at != at {
		*m = minute{at: at, behind: map[int]int{}}
	}
	m.looks++
	const few = 8
	if len(ranks) <= few {
		for _, r := range ranks {
			m.behind[r]++
		}
	}
}

// most is the rank that was behind most often in the last hour, and its share of the looks; rank -1 if none was.
func (h *hour) most() (rank int, share float64) {
	total, looks := map[int]int{}, 0
	newest := slices.MaxFunc(h.minutes[:], func(a, b minute) int { return int(a.at - b.at) }).at
	for i := range h.minutes {
		if m := &h.minutes[i]; newest-m.at < 60 {
			looks += m.looks
			for r, n := range m.behind {
				total[r] += n
			}
		}
	}
	rank, n := -1, 0
	for r, k := range total {
		if k > n || k == n && r < rank {
			rank, n = r, k
		}
	}
	if looks == 0 {
		return rank, 0
	}
	return rank, float64(n) / float64(looks)
}
