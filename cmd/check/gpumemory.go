package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/bench/meter"
)

// Units, and the size of copies.
const (
	mib   = 1 << 20
	gib   = 1 << 30
	gbps  = 1e9
	chunk = 64 * mib // of copies between GPUs and with the host
)

// An effort is the amount of work in GPU stages. The emulator gets less: it is slow, and its clock is exact.
type effort struct {
	share  float64 // of free memory to test
	most   int     // bytes of it
	copied int     // bytes of a copy in memory
	sent   int     // bytes of a copy to another GPU or the host
	times  int     // copies in a row
}

func (s *gpuSet) effort(full bool) effort {
	switch emulated := s.driver.Name() == "emu"; {
	case emulated && full:
		return effort{1, mib, mib, mib, 1}
	case emulated:
		return effort{1, 32 << 10, mib / 2, mib / 4, 1}
	case full:
		return effort{0.95, math.MaxInt, gib, 4 * chunk, 10}
	}
	return effort{0.5, gib, 256 * mib, chunk, 4}
}

// testMemories writes and reads each GPU's memory.
func testMemories(ctx context.Context, j *job, s *gpuSet) ([]measurement, error) {
	host, e := j.Host(), s.effort(j.cfg.Full)
	list := s.each(ctx, host, func(i int, g *meter.GPU) (list []measurement, err error) {
		at := of(host, gpuName(i))
		rate, err := g.CopyRate(ctx, e.copied, e.times)
		if err != nil {
			return nil, err
		}
		list = append(list, measurement{Subject: at, Quantity: "bandwidth", Value: rate / gbps, Unit: "GB/s"})
		t, err := g.TestMemory(ctx, e.share, e.most)
		if err != nil {
			return list, err
		}
		return append(list,
			measurement{Subject: at, Quantity: "tested", Value: float64(t.Bytes), Unit: "B"},
			measurement{Subject: at, Quantity: "wrong words", Value: float64(t.Count), Text: badMemory(t.Wrong)}), nil
	})
	for i, g := range s.gpus { // one after the other: they may share the way to the host
		if g == nil {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		at := of(host, gpuName(i))
		in, out, err := g.HostRates(ctx, e.sent, e.times)
		if outOfTime(ctx, err) {
			break
		}
		if err != nil {
			list = append(list, s.drop(host, i, err))
			continue
		}
		list = append(list,
			measurement{Subject: at, Quantity: "from host", Value: in / gbps, Unit: "GB/s"},
			measurement{Subject: at, Quantity: "to host", Value: out / gbps, Unit: "GB/s"})
	}
	return list, ctx.Err()
}

// badMemory describes the wrong places in memory: "0x7f…0 (offset 0x40): bit 3 is always 1".
func badMemory(list []meter.Wrong) string {
	at := map[uint64][]meter.Wrong{}
	var order []uint64
	for _, w := range list {
		if at[w.Address] == nil {
			order = append(order, w.Address)
		}
		at[w.Address] = append(at[w.Address], w)
	}
	slices.Sort(order)
	var texts []string
	for _, a := range order[:min(len(order), 3)] {
		zero, one := meter.Stuck(at[a])
		how := "changes"
		switch {
		case zero != 0 && one != 0:
			how = bitsOf(zero) + " always 0, " + bitsOf(one) + " always 1"
		case zero != 0:
			how = bitsOf(zero) + " always 0"
		case one != 0:
			how = bitsOf(one) + " always 1"
		}
		texts = append(texts, fmt.Sprintf("%#x (offset %#x): %s", a, at[a][0].Offset, how))
	}
	if more := len(order) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

func bitsOf(v uint64) string {
	var list []string
	for b := range 64 {
		if v>>b&1 != 0 {
			list = append(list, fmt.Sprint(b))
		}
	}
	if len(list) > 4 {
		return fmt.Sprintf("%d bits", len(list))
	}
	return "bit " + strings.Join(list, ",")
}

// judgeMemory compares GPUs of a model with each other and with its data sheet.
func judgeMemory(r *report, _ *config) []finding {
	f := &findings{r: r}
	const stage = "GPU memory"
	for _, m := range r.Of(stage, "wrong words") {
		if m.Value > 0 {
			f.add(broken, "bad-memory", m.Subject, 800,
				"its memory does not keep what is written: %.0f words of 8 bytes were wrong, at %s; take it out of service and "+
					"replace it", m.Value, m.Text)
		}
	}
	f.slowGPUs(stage, "bandwidth", "slow-memory", 0.1,
		"its memory moves %s, the others' %s: look at its clocks and ECC, then replace it")
	f.slowGPUs(stage, "from host", "slow-host-link", 0.5,
		"copies from the host reach %s, the others' %s: its PCIe link has fewer lanes or a lower generation, or its memory "+
			"is at another socket")
	f.slowGPUs(stage, "to host", "slow-host-link", 0.5,
		"copies to the host reach %s, the others' %s: its PCIe link has fewer lanes or a lower generation, or its memory "+
			"is at another socket")
	for _, m := range r.Of(stage, "bandwidth") {
		if known, ok := knownModel(f.modelOf(m.Subject)); ok && m.Value < enoughMemory*known.memory &&
			!f.has("slow-memory", m.Subject) {
			f.add(degraded, "slow-memory", m.Subject, known.memory/max(1, m.Value),
				"its memory moves %s, of %.0f GB/s that a %s has: look at its clocks, ECC and what else runs there",
				spell(m.Value, m.Unit), known.memory, known.name)
		}
	}
	f.slowPCIe(stage)
	f.gpuFailures(stage)
	return f.list
}

// slowPCIe compares copies with what the link's lanes carry.
func (f *findings) slowPCIe(stage string) {
	widths, generations := bySubject(f.r.Of("GPU state", "greatest PCIe width")),
		bySubject(f.r.Of("GPU state", "greatest PCIe generation"))
	for _, m := range f.r.Of(stage, "to host") {
		if most := widths[m.Subject].Value * pcieLane[int(generations[m.Subject].Value)]; m.Value < enoughPCIe*most &&
			!f.has("slow-host-link", m.Subject) {
			f.add(degraded, "slow-host-link", m.Subject, most/max(m.Value, 1),
				"copies to the host reach %s, its PCIe link is made for %.0f GB/s: look at lspci for its width and speed",
				spell(m.Value, m.Unit), most)
		}
	}
}

// slowGPUs finds GPUs that are slower than the others of their model.
func (f *findings) slowGPUs(stage, quantity, code string, floor float64, text string) {
	byModel := map[string][]measurement{}
	for _, m := range f.r.Of(stage, quantity) {
		name := f.modelOf(m.Subject)
		byModel[name] = append(byModel[name], m)
	}
	for _, list := range byModel {
		for _, o := range outliers(values(list), floor, true) {
			m := list[o.Index]
			if !f.has(code, m.Subject) {
				f.add(degraded, code, m.Subject, o.Median/max(o.Value, 1e-9), text, spell(o.Value, m.Unit), between(o, m.Unit))
			}
		}
	}
}

// between is the range of the values that are no outliers: "355 to 362 GB/s".
func between(o outlier, unit string) string {
	low, high := spell(o.Low, unit), spell(o.High, unit)
	if low == high {
		return high
	}
	return figure(o.Low) + " to " + high
}

func values(list []measurement) []float64 {
	v := make([]float64, len(list))
	for i, m := range list {
		v[i] = m.Value
	}
	return v
}

// has reports whether there is already a finding with a code about a subject.
func (f *findings) has(code string, at subject) bool {
	return slices.ContainsFunc(f.list, func(x finding) bool { return x.Code == code && x.Subject == at })
}

// modelOf is the model of a GPU, "" if it is not known.
func (f *findings) modelOf(at subject) string {
	if f.models == nil {
		f.models = bySubject(f.r.Of("GPUs", "model"))
	}
	return f.models[at].Text
}

// bySubject maps the measurements of one quantity by their subjects.
func bySubject(list []measurement) map[subject]measurement {
	at := make(map[subject]measurement, len(list))
	for _, m := range list {
		at[m.Subject] = m
	}
	return at
}
