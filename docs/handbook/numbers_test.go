package handbook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/transport"
)

// model is a preset, with nodes of another size in NET/SIZE.
func model(name string) sim.Model {
	name, nodes, _ := strings.Cut(name, "/")
	m, ok := sim.Presets[name]
	if !ok {
		panic(fmt.Sprintf("no model %q", name))
	}
	if nodes != "" {
		m.NodeRanks = number(nodes)
	}
	return m
}

func number(word string) int { return must(strconv.Atoi(word)) }

// must is for what the handbook has right, or its test fails.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// timed is the time of a schedule under a model, in µs.
func timed(s sched.Schedule, m sim.Model, bytes int64) float64 {
	return must(sim.Run(context.Background(), s, m, bytes, sim.Options{})).Time * 1e6
}

// times compares schedules on paper: times NET n bytes,bytes,… SCHEDULE ….
func times(arguments []string) string {
	m, n, names := model(arguments[0]), number(arguments[1]), arguments[3:]
	var b strings.Builder
	b.WriteString("| µs |")
	for _, name := range names {
		fmt.Fprintf(&b, " `%s` |", name)
	}
	b.WriteString("\n|--:|" + strings.Repeat("--:|", len(names)) + "\n")
	for size := range strings.SplitSeq(arguments[2], ",") {
		bytes := must(bench.ParseSize(size))
		var took []float64
		for _, name := range names {
			took = append(took, timed(find(name).build(n), m, bytes))
		}
		fmt.Fprintf(&b, "| %s |", human(bytes))
		for _, us := range took {
			if us == slices.Min(took) {
				fmt.Fprintf(&b, " **%s** |", short(us))
			} else {
				fmt.Fprintf(&b, " %s |", short(us))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A measured point is the time of an all-reduce of two ranks.
type measured struct{ bytes, us float64 }

// report has the all-reduces out of place that this library has made.
func report(name string) (points []measured) {
	var r struct {
		Rows []struct {
			Program, Collective string
			Size                float64
			Out                 struct {
				Time float64 `json:"time_us"`
			} `json:"out_of_place"`
		}
	}
	if err := json.Unmarshal(must(os.ReadFile("../../bench/results/"+name+".json")), &r); err != nil {
		panic(err)
	}
	for _, row := range r.Rows {
		if row.Program == "ringo" && row.Collective == "allreduce" {
			points = append(points, measured{row.Size, row.Out.Time})
		}
	}
	return points
}

var wires = []struct{ report, what string }{
	{"host-shm-np2", "shared memory, two processes"},
	{"host-unix-np2", "unix sockets"},
	{"host-tcp-np2", "TCP over loopback"},
	{"gpu-h200x2-allreduce", "two H200s over NVLink"},
}

// alphaBeta reads α off the smallest message, and the rate 1/β off that of 16 MiB or the next larger one.
func alphaBeta(points []measured) (us, gbs float64) {
	us = points[0].us
	for _, p := range points {
		if p.bytes >= 16<<20 {
			return us, p.bytes / (p.us - us) / 1e3
		}
	}
	return us, math.NaN()
}

// fit is the table of measured α and β.
func fit([]string) string {
	var b strings.Builder
	b.WriteString("| between two ranks | α, µs | 1/β, GB/s | α/β | report |\n|---|--:|--:|--:|---|\n")
	for _, w := range wires {
		us, gbs := alphaBeta(report(w.report))
		fmt.Fprintf(&b, "| %s | %.2f | %.1f | %s | [%s](../../bench/results/%s.json) |\n", w.what, us, gbs,
			human(int64(us*gbs*1e3)), w.report, w.report)
	}
	return b.String()
}

// constant is a number that code holds: number NAME.
func constant(arguments []string) string {
	switch arguments[0] {
	case "inline":
		return fmt.Sprint(fifo.InlineBytes)
	case "gamma":
		return fmt.Sprintf("%.0f", 1/model(arguments[1]).Reduce/1e9)
	case "slot":
		return human(ringo.DefaultSlotBytes)
	case "slots":
		return fmt.Sprint(ringo.DefaultSlots)
	case "piece":
		e := engine.New(transport.Limits{SlotBytes: ringo.DefaultSlotBytes, Slots: ringo.DefaultSlots})
		return human(int64(e.Piece()))
	case "line":
		return fmt.Sprint(collective.LineData)
	case "sign":
		return fmt.Sprint(8 * len(transport.Stamp{}))
	case "history":
		return fmt.Sprint(history.Depth)
	case "cause":
		return fmt.Sprint(life.RootCauseWait.Seconds())
	case "trial":
		return fmt.Sprint(bootstrap.TrialTime.Seconds())
	}
	n := number(arguments[2])
	s := find(arguments[1]).build(n)
	c := must(sched.CostOf(s, n))
	switch arguments[0] {
	case "partners":
		partners := map[sched.Rank]bool{}
		for i := range s.Len(0) {
			partners[s.At(0, i).Send] = true
		}
		delete(partners, sched.Nobody)
		return fmt.Sprint(len(partners))
	case "hops":
		return fmt.Sprint(c.Hops)
	case "sends":
		return decimal(float64(c.Sent) / float64(max(s.Shape().In, s.Shape().Out)))
	}
	panic("no number " + arguments[0])
}

// bus is the table of factors between algbw and busbw.
func bus([]string) string {
	var b strings.Builder
	b.WriteString("| collective | S, the column \"size\" | busbw / algbw | on 2 ranks | 4 | 8 " +
		"|\n|---|---|---|--:|--:|--:|\n")
	for _, c := range bench.Collectives {
		size := "a rank's buffer"
		if c.In.PerRank || c.Out.PerRank {
			size = "all n blocks"
		}
		formula := map[string]string{"1": "1", "0.75": "(n − 1)/n", "1.5": "2(n − 1)/n"}[decimal(c.Bus(4))]
		if formula == "" {
			panic(fmt.Sprintf("%s has a factor that is not in this table: %g of 4 ranks", c.Name, c.Bus(4)))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.Name, size, formula, decimal(c.Bus(2)), decimal(c.Bus(4)),
			decimal(c.Bus(8)))
	}
	return b.String()
}

func human(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return decimal(math.Round(float64(bytes)/(1<<30)*10)/10) + " GiB"
	case bytes >= 1<<20:
		return decimal(math.Round(float64(bytes)/(1<<20)*10)/10) + " MiB"
	case bytes >= 1<<10:
		return decimal(math.Round(float64(bytes)/(1<<10)*10)/10) + " KiB"
	}
	return fmt.Sprint(bytes, " B")
}

// short writes a time with three digits.
func short(us float64) string {
	switch {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	}
	s := fmt.Sprintf("%.0f", us)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
