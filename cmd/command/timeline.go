package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/chart"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace"
)

// loadTrace reads the one file that is a trace; nil if none is.
func loadTrace(files []string) (*trace.Trace, error) {
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(b[:min(len(b), 200)], []byte(trace.Format)) {
			continue
		}
		if len(files) > 1 {
			return nil, cli.Usagef("%s is a trace: give it alone", file)
		}
		t, err := trace.Read(bytes.NewReader(b))
		if err == nil {
			err = t.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return t, nil
	}
	return nil, nil
}

// barrier is the kind of call that is drawn only if it is asked for, or alone.
var barrier = ringo.KindBarrier.String()

// Colors of a timeline.
const (
	stepColor, waitColor, roomColor, gpuColor = 5, 4, 1, 2
)

// drawTrace draws a collective of a trace, 0 for the last one that all ranks have steps of, or else what happens during
// the last call with steps.
func drawTrace(file, title string, t *trace.Trace, number uint32) error {
	ranks := map[uint32]int{}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Number > 0 && !c.Model && c.Kind != barrier && (c.GPU || len(c.Steps) > 0) {
			ranks[c.Number]++
		}
	}
	pick := func(c *trace.Call) bool {
		return c.Number == number
	}
	if number == 0 {
		for i := range t.Calls {
			if c := &t.Calls[i]; ranks[c.Number] == c.Size {
				number = max(number, c.Number)
			}
		}
		if last := lastWithSteps(t); number == 0 && last != nil { // of a model alone, or messages
			pick = func(c *trace.Call) bool { return c == last || c.Model && c.Start == last.Start }
		}
	}
	from, to := int64(math.MaxInt64), int64(0)
	var name string
	for i := range t.Calls {
		if c := &t.Calls[i]; pick(c) {
			from, to, name = min(from, cmp.Or(c.Queued, c.Start)), max(to, c.End), cmp.Or(name, c.Title())
		}
	}
	if name == "" {
		return cli.Usagef("--call %d: the trace has no such collective, or nothing to draw", number)
	}
	micros := func(at int64) float64 { return float64(at-from) / 1e3 }
	line := chart.Timeline{Title: cmp.Or(title, name), To: micros(to), Legend: []chart.Key{
		{Color: stepColor, Label: "step"}, {Color: waitColor, Label: "waits for a message of a rank"}, {Color: roomColor, Label: "for room there, or a connection"}, {Color: gpuColor, Label: "on a GPU"},
	}}
	type place struct {
		rank, kind, lane int
	}
	tracks := map[place]*chart.Track{}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.End < from || cmp.Or(c.Queued, c.Start) > to {
			continue
		}
		at, where := place{c.Rank, 0, c.Lane}, ""
		switch {
		case c.Model:
			at.kind, where = 2, ", model"
		case c.GPU:
			at.kind, where = 1, ", GPU"
		case c.Lane > 0:
			where = fmt.Sprintf(", lane %d", c.Lane)
		}
		if tracks[at] == nil {
			tracks[at] = &chart.Track{Name: fmt.Sprintf("rank %d%s", c.Rank, where)}
		}
		bars := &tracks[at].Bars
		if c.GPU {
			*bars = append(*bars, chart.Bar{From: micros(c.Start), To: micros(c.End), Color: gpuColor, Label: c.Title()},
				chart.Bar{From: micros(c.Queued), To: micros(c.Issued), Color: stepColor, Thin: true, Label: "queue"})
		}
		for _, s := range c.Steps {
			b := chart.Bar{From: micros(s.Start), To: micros(s.End), Color: stepColor}
			switch {
			case s.What == trace.Step:
				b.Label = fmt.Sprint(s.Step)
			case s.What == trace.Wait && s.Recv >= 0:
				b.Color, b.Thin, b.Label = waitColor, true, fmt.Sprintf("rank %d", s.Recv)
			default:
				b.Color, b.Thin, b.Label = roomColor, true, fmt.Sprintf("rank %d", s.Peer())
			}
			*bars = append(*bars, b)
		}
	}
	order := make([]place, 0, len(tracks))
	for p := range tracks {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind), cmp.Compare(a.lane, b.lane))
	})
	for _, p := range order {
		line.Tracks = append(line.Tracks, *tracks[p])
	}
	return writeTimeline(file, &line)
}

func lastWithSteps(t *trace.Trace) (last *trace.Call) {
	for i := range t.Calls {
		if c := &t.Calls[i]; len(c.Steps) > 0 && (last == nil || last.Kind == barrier || c.Start > last.Start && c.Kind != barrier) {
			last = c
		}
	}
	return last
}

func writeTimeline(file string, line *chart.Timeline) error {
	format := strings.TrimPrefix(filepath.Ext(file), ".")
	if format != "svg" && format != "png" {
		return cli.Usagef("-o %s: a trace is drawn as .svg or .png", file)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(line.Write(f, format), f.Close())
}
