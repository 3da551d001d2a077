package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench/chart"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/trace"
)

// loadTrace reads the trace among files; nil if there is none. A trace beside other files is an error.
func loadTrace(files []string) (*trace.Trace, error) {
	for _, file := range files {
		b, err := given.Read(file)
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

// barrier is the kind of call that number 0 passes over where there are other calls.
var barrier = ringo.KindBarrier.String()

// Colors of a timeline, as indices for package chart.
const (
	stepColor, waitColor, roomColor, gpuColor = 5, 4, 1, 2
)

// drawTrace draws the calls during the collective of a number. Number 0 is the last collective with steps of all
// ranks, or else the last call with steps.
func drawTrace(file string, stdout io.Writer, title string, t *trace.Trace, number uint32) error {
	if strings.EqualFold(filepath.Ext(file), ".html") {
		return cli.Usagef("-o %s: a trace is drawn as .svg", file)
	}
	pick := picked(t, number)
	from, to := int64(math.MaxInt64), int64(0)
	var name string
	for i := range t.Calls {
		if c := &t.Calls[i]; pick(c) {
			from, to, name = min(from, cmp.Or(c.Queued, c.Start)), max(to, c.End), cmp.Or(name, c.Title())
		}
	}
	if name == "" {
		return cli.Usagef("-call %d: the trace has no such collective, or nothing to draw", number)
	}
	d := &drawing{from: from, tracks: map[trackKey]*chart.Track{}}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.End >= from && cmp.Or(c.Queued, c.Start) <= to {
			d.add(c)
		}
	}
	line := &chart.Timeline{Title: cmp.Or(title, name), To: d.micros(to), Tracks: d.ordered(), Legend: []chart.Key{
		{Color: stepColor, Label: "step"}, {Color: waitColor, Label: "waits for a message of a rank"},
		{Color: roomColor, Label: "for room there, or a connection"}, {Color: gpuColor, Label: "on a GPU"},
	}}
	return cli.Save("-o", file, stdout, line.Write)
}

// picked reports whether a call belongs to the collective of that number, which may be 0.
func picked(t *trace.Trace, number uint32) func(*trace.Call) bool {
	if number == 0 {
		ranks := map[uint32]int{}
		for i := range t.Calls {
			if c := &t.Calls[i]; c.Number > 0 && !c.Model && c.Kind != barrier && (c.GPU || len(c.Steps) > 0) {
				ranks[c.Number]++
			}
		}
		for i := range t.Calls {
			if c := &t.Calls[i]; ranks[c.Number] == c.Size {
				number = max(number, c.Number)
			}
		}
		if last := lastWithSteps(t); number == 0 && last != nil { // a trace of a model only, or of messages only
			return func(c *trace.Call) bool { return c == last || c.Model && c.Start == last.Start }
		}
	}
	return func(c *trace.Call) bool { return c.Number == number }
}

// A drawing is the tracks of a timeline that begins at from, in nanoseconds.
type drawing struct {
	from   int64
	tracks map[trackKey]*chart.Track
}

// A trackKey identifies a track. Tracks are ordered by it. kind is 0 for calls on the host, 1 for a GPU, 2 for a model.
type trackKey struct{ rank, kind, track int }

func (d *drawing) micros(at int64) float64 { return float64(at-d.from) / 1e3 }

// add draws a call with its steps.
func (d *drawing) add(c *trace.Call) {
	k, where := trackKey{c.Rank, 0, c.Track}, ""
	switch {
	case c.Model:
		k.kind, where = 2, ", model"
	case c.GPU:
		k.kind, where = 1, ", GPU"
	case c.Track > 0:
		where = fmt.Sprintf(", lane %d", c.Track)
	}
	if d.tracks[k] == nil {
		d.tracks[k] = &chart.Track{Name: fmt.Sprintf("rank %d%s", c.Rank, where)}
	}
	bars := &d.tracks[k].Bars
	if c.GPU {
		*bars = append(*bars, chart.Bar{From: d.micros(c.Start), To: d.micros(c.End), Color: gpuColor, Label: c.Title()},
			chart.Bar{From: d.micros(c.Queued), To: d.micros(c.Issued), Color: stepColor, Thin: true, Label: "queue"})
	}
	for _, s := range c.Steps {
		b := chart.Bar{From: d.micros(s.Start), To: d.micros(s.End), Color: stepColor}
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

// ordered are the tracks by rank, kind and number.
func (d *drawing) ordered() (list []chart.Track) {
	order := slices.SortedFunc(maps.Keys(d.tracks), func(a, b trackKey) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind), cmp.Compare(a.track, b.track))
	})
	for _, k := range order {
		list = append(list, *d.tracks[k])
	}
	return list
}

func lastWithSteps(t *trace.Trace) (last *trace.Call) {
	for i := range t.Calls {
		if c := &t.Calls[i]; len(c.Steps) > 0 &&
			(last == nil || last.Kind == barrier || c.Start > last.Start && c.Kind != barrier) {
			last = c
		}
	}
	return last
}
