package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/cmd/check/nvml"
)

// askGPUs asks the driver's management library about every GPU.
func askGPUs(ctx context.Context, j *job, s *gpuSet) (list []measurement, err error) {
	if s.manager == nil {
		return nil, skip("no NVML: %s", s.without)
	}
	for i := range s.gpus {
		at := of(j.Host(), gpuName(i))
		state, err := s.state(i)
		if err != nil {
			list = append(list, measurement{Subject: at, Quantity: "lost", Text: err.Error()})
			continue
		}
		list = append(list, measured(at, &state)...)
		if err := ctx.Err(); err != nil {
			return list, err
		}
	}
	return list, nil
}

// state is what the manager says of a GPU of the driver's.
func (s *gpuSet) state(i int) (state nvml.State, err error) {
	dev, err := s.driver.DeviceGet(i)
	if err != nil {
		return state, err
	}
	pci, err := s.driver.DeviceGetPCIBusId(dev)
	if err != nil {
		return state, err
	}
	d, err := s.manager.At(pci)
	if err != nil {
		return state, err
	}
	return s.manager.State(d)
}

// measured turns the known fields of a state into measurements.
func measured(at subject, s *nvml.State) (list []measurement) {
	number := func(quantity string, v int64, unit string) {
		if v >= 0 {
			list = append(list, measurement{Subject: at, Quantity: quantity, Value: float64(v), Unit: unit})
		}
	}
	onOff := func(quantity string, v nvml.Switch) {
		if v != nvml.Unknown {
			list = append(list, measurement{Subject: at, Quantity: quantity, Text: v.String()})
		}
	}
	onOff("ECC", s.ECC)
	onOff("ECC after a reset", s.ECCPending)
	onOff("MIG", s.MIG)
	onOff("persistence", s.Persistence)
	number("errors corrected", s.Corrected, "")
	number("errors uncorrected", s.Uncorrected, "")
	number("errors uncorrected ever", s.UncorrectedEver, "")
	number("rows replaced", int64(s.Rows.Corrected+s.Rows.Uncorrected), "")
	onOff("row waits", s.Rows.Pending)
	onOff("no spare row", s.NoSpare)
	number("pages retired", int64(s.Pages.Corrected+s.Pages.Uncorrected), "")
	onOff("page waits", s.Pages.Pending)
	if held := s.Slowed.String(); held != "" {
		list = append(list, measurement{Subject: at, Quantity: "slowed", Text: held})
	}
	number("clock", int64(s.SM), "MHz")
	number("greatest clock", int64(s.SMMax), "MHz")
	number("temperature", int64(s.Degrees), "°C")
	number("temperature limit", int64(s.Limit), "°C")
	number("PCIe generation", int64(s.PCIe.Generation), "")
	number("greatest PCIe generation", int64(s.PCIe.GenerationMax), "")
	number("PCIe width", int64(s.PCIe.Width), "")
	number("greatest PCIe width", int64(s.PCIe.WidthMax), "")
	number("PCIe replays", int64(s.PCIe.Replays), "")
	if len(s.Links) > 0 {
		list = append(list, linksOf(at, s.Links)...)
	}
	return list
}

// linksOf sums a GPU's NVLinks up.
func linksOf(at subject, links []nvml.NVLink) []measurement {
	up, switches, recovered, crc := 0, 0, int64(0), int64(0)
	var bad []int
	for i, l := range links {
		if l.Active {
			up++
		}
		if l.Switch {
			switches++
		}
		recovered, crc = recovered+l.Recovery, crc+l.Errors
		if l.Errors > 0 {
			bad = append(bad, i)
		}
	}
	return []measurement{
		{Subject: at, Quantity: "NVLinks", Value: float64(len(links))},
		{Subject: at, Quantity: "NVLinks up", Value: float64(up)},
		{Subject: at, Quantity: "NVLinks to switches", Value: float64(switches)},
		{Subject: at, Quantity: "NVLink recoveries", Value: float64(recovered)},
		{Subject: at, Quantity: "NVLink errors", Value: float64(crc), Text: ranges(bad)},
	}
}

// ranges are ascending numbers as text: 0-3,7.
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); i++ {
		first := i
		for i+1 < len(list) && list[i+1] == list[i]+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, list[first])
		if i > first {
			fmt.Fprintf(&b, "-%d", list[i])
		}
	}
	return b.String()
}

// judgeState finds GPUs with errors, limits or settings that they should not have.
func judgeState(r *report, _ *config) []finding {
	f := &findings{r: r}
	const stage = "GPU state"
	for _, m := range r.Of(stage, "lost") {
		if slices.ContainsFunc(r.Findings, func(x finding) bool { return x.Code == "gpu-fails" && x.Subject == m.Subject }) {
			continue
		}
		f.add(broken, "gpu-lost", m.Subject, 900,
			"%s: look for Xid 79 in its kernel log, and reset the GPU or power its host off and on", m.Text)
	}
	for _, q := range []struct {
		quantity string
		severity severity
		code     string
		text     string // with the number, of what counts
	}{
		{"errors uncorrected", broken, "ecc-uncorrected",
			"%.0f uncorrected errors of memory since the driver was loaded: drain and reset it, and replace it if they come " +
				"again"},
		{"NVLink recoveries", degraded, "nvlink-recovers",
			"its NVLinks were trained anew %.0f times since the driver was loaded: a weak link or connector"},
		{"no spare row", broken, "rows-exhausted",
			"a bad row of its memory could not be replaced, no spare is left: replace the GPU"},
		{"row waits", degraded, "row-pending",
			"a bad row of its memory waits to be replaced: reset the GPU when no job runs"},
		{"page waits", degraded, "page-pending",
			"a bad page of its memory waits to be retired: reset the GPU when no job runs"},
		{"MIG", degraded, "mig", "it is cut into instances (MIG), which reach no other GPU: nvidia-smi -mig 0 undoes it"},
	} {
		for _, m := range r.Of(stage, q.quantity) {
			switch {
			case m.Value > 0:
				f.add(q.severity, q.code, m.Subject, m.Value, q.text, m.Value)
			case m.Text == nvml.On.String():
				f.add(q.severity, q.code, m.Subject, 0, "%s", q.text)
			}
		}
	}
	for _, m := range r.Of(stage, "slowed") {
		f.add(degraded, "throttled", m.Subject, 10, "its clocks are held down: %s; look at fans, inlet temperature and power",
			m.Text)
	}
	for _, o := range unlike(r.Of(stage, "ECC")) {
		f.add(degraded, "ecc-differs", o.Subject, 0,
			"ECC is %s, and %s for the others: nvidia-smi -e 1 and a reset turn it on", o.said(), o.most)
	}
	for _, o := range unlike(r.Of(stage, "persistence")) {
		f.add(well, "persistence-differs", o.Subject, 0,
			"persistence mode is %s, and %s for the others: the first use takes seconds without", o.said(), o.most)
	}
	f.repaired(r.Of(stage, "NVLink errors"))
	f.pcieAndLinks(stage)
	return f.list
}

// repaired names GPUs whose links repair far more than those of the others. All links repair
// some: two healthy H200s had counted 7,000 each since their driver was loaded.
func (f *findings) repaired(list []measurement) {
	for i, m := range list {
		var others []float64
		for k, o := range list {
			if k != i {
				others = append(others, o.Value)
			}
		}
		if usual := median(others); len(others) > 0 && m.Value >= 1000+10*usual {
			f.add(well, "nvlink-errors", m.Subject, m.Value,
				"%.0f errors were repaired on its NVLinks %s since the driver was loaded, %.0f on the others'", m.Value,
				m.Text, usual)
		}
	}
}

// pcieAndLinks compares the links' present width, generation and number with the greatest possible.
func (f *findings) pcieAndLinks(stage string) {
	for _, q := range []struct{ now, most, code, text string }{
		{"PCIe width", "greatest PCIe width", "pcie-width", "its PCIe link has %.0f of %.0f lanes: seat card and cable anew"},
		{"NVLinks up", "NVLinks", "nvlinks-down",
			"%.0f of its %.0f NVLinks are up: reset the GPUs of the host, then look at the module and its switches"},
	} {
		most := bySubject(f.r.Of(stage, q.most))
		for _, m := range f.r.Of(stage, q.now) {
			if all, ok := most[m.Subject]; ok && m.Value < all.Value && f.apart(stage, q.now, m) {
				f.add(degraded, q.code, m.Subject, all.Value/max(1, m.Value), q.text, m.Value, all.Value)
			}
		}
	}
	// A slot of an older generation than the others' shows in its greatest generation.
	generations := f.r.Of(stage, "greatest PCIe generation")
	best := 0.0
	for _, m := range generations {
		best = max(best, m.Value)
	}
	for _, m := range generations {
		if m.Value < best {
			f.add(degraded, "pcie-generation", m.Subject, best-m.Value,
				"its PCIe link reaches generation %.0f, others %.0f: look at its slot and the BIOS", m.Value, best)
		}
	}
}

// apart reports whether a low value is a fault. For NVLinks another GPU must have more: a board may leave links of all
// its GPUs unused. PCIe lanes of each GPU are judged by themselves.
func (f *findings) apart(stage, quantity string, m measurement) bool {
	if quantity != "NVLinks up" {
		return true
	}
	for _, o := range f.r.Of(stage, quantity) {
		if o.Value > m.Value {
			return true
		}
	}
	return m.Value == 0
}
