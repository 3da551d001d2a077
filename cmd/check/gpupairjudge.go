package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

// judgePairs compares ways over the same kind of link between GPUs of the same model.
func judgePairs(r *report, _ *config) []finding {
	f := &findings{r: r}
	const stage = "GPU pairs"
	links := map[subject]string{}
	for _, m := range r.Of(stage, "link") {
		links[m.Subject] = m.Text
	}
	for _, m := range r.Of(stage, "wrong words") {
		if m.Value > 0 {
			f.add(broken, "link-corrupts", m.Subject, 800,
				"%.0f words of 8 bytes came changed over %s: take both out of service until the link is replaced", m.Value,
				links[m.Subject])
		}
	}
	for _, m := range r.Of(stage, "torn lines") {
		if m.Value > 0 && links[m.Subject] == string(cuda.NVLink) {
			f.add(broken, "torn-lines", m.Subject, 700,
				"%.0f lines of 128 bytes came in pieces over NVLink (%s): small messages would be wrong; reset it, and replace "+
					"it if it stays (RINGO_LINES=0 and NCCL_PROTO=^LL128 avoid lines)", m.Value, m.Text)
		}
	}
	f.links(links)
	f.slowWays(stage, "bandwidth", "slow-pair", links, true)
	f.slowWays(stage, "latency", "late-pair", links, false)
	f.oneWay(stage)
	f.knownNVLink(stage, links)
	f.gpuFailures(stage)
	return f.list
}

// links finds ways that have no link, or a slower kind, where others have it.
func (f *findings) links(links map[subject]string) {
	pairs, hosts := map[[2]string]votes{}, map[string]votes{} // of a pair on all hosts, of all pairs of a host
	for at, kind := range links {
		pair := [2]string{at.Part, at.To.Part}
		if pairs[pair] == nil {
			pairs[pair] = votes{}
		}
		if hosts[at.Host] == nil {
			hosts[at.Host] = votes{}
		}
		pairs[pair][kind]++
		hosts[at.Host][kind]++
	}
	for _, at := range ordered(links) {
		kind, back := links[at], links[pairOf(at.To, at.component)]
		if kind == "none" && back != "none" {
			f.add(degraded, "no-peer-access", at, 50,
				"no access to its memory, which there is the other way (%s): look at ACS, IOMMU and the driver's module", back)
			continue
		}
		most := pairs[[2]string{at.Part, at.To.Part}].most(3, 0) // hosts, none but this one
		if most == "" {
			most = hosts[at.Host].most(5, 2) // ways, all but this pair's
		}
		if kind == back && most != "" && kind != most && at.Part < at.To.Part {
			f.add(degraded, "other-link", at, 40,
				"they are joined by %s, where others have %s: look at nvidia-smi topo -m and the fabric manager", kind, most)
		}
	}
}

// votes count kinds of links.
type votes map[string]int

// most is the kind with more than half of the votes, or, if but is not 0, with all votes but that many. It is empty if
// there is none, or fewer votes than least.
func (v votes) most(least, but int) string {
	all := 0
	for _, n := range v {
		all += n
	}
	for kind, n := range v {
		if all >= least && (but == 0 && 2*n > all || but > 0 && n >= all-but) {
			return kind
		}
	}
	return ""
}

func ordered(links map[subject]string) []subject {
	return slices.SortedFunc(maps.Keys(links), func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Part, b.Part), cmp.Compare(a.To.Part, b.To.Part))
	})
}

// slowWays finds ways that are worse than the others of their kind. A GPU with mostly bad ways is named in place of
// the ways.
func (f *findings) slowWays(stage, quantity, code string, links map[subject]string, low bool) {
	kinds := map[[2]string][]measurement{}
	ways := map[component]int{}
	for _, m := range f.r.Of(stage, quantity) {
		kind := [2]string{f.modelOf(of(m.Subject.Host, m.Subject.Part)), links[m.Subject]}
		kinds[kind] = append(kinds[kind], m)
		ways[m.Subject.component]++
		ways[m.Subject.To]++
	}
	type slow struct {
		m measurement
		o outlier
	}
	for kind, list := range kinds {
		floor := 0.5 // the ways of PCIe differ: through one switch, through both sockets
		if kind[1] == string(cuda.NVLink) {
			floor = 0.2
		}
		touched := map[component][]slow{}
		var all []slow
		for _, o := range outliers(values(list), floor, low) {
			x := slow{list[o.Index], o}
			all = append(all, x)
			touched[x.m.Subject.component] = append(touched[x.m.Subject.component], x)
			touched[x.m.Subject.To] = append(touched[x.m.Subject.To], x)
		}
		named := func(p component) bool { return ways[p] >= 4 && 4*len(touched[p]) > 3*ways[p] }
		for p, list := range touched {
			if named(p) {
				f.slowGPU(p, code, list[0].o, list[0].m.Unit, len(list), ways[p])
			}
		}
		for _, x := range all {
			at := x.m.Subject
			if named(at.component) || named(at.To) || f.has("slow-pair", at) {
				continue
			}
			if low {
				f.add(degraded, code, at, x.o.Median/max(x.o.Value, 1e-9),
					"%s over %s, the others %s: link or switch port; swap or reset it", spell(x.o.Value, x.m.Unit), links[at],
					between(x.o, x.m.Unit))
			} else {
				f.add(degraded, code, at, x.o.Ratio,
					"a load takes %s over %s, the others' %s: it goes by another way, or the link repeats itself",
					spell(x.o.Value, x.m.Unit), links[at], between(x.o, x.m.Unit))
			}
		}
	}
}

// slowGPU names a GPU that is slow to most others.
func (f *findings) slowGPU(p component, code string, o outlier, unit string, n, of int) {
	code = map[string]string{"slow-pair": "slow-gpu-links", "late-pair": "late-gpu-links"}[code]
	weight := max(o.Ratio, 1/max(o.Ratio, 1e-9)) * float64(n)
	f.add(degraded, code, subject{component: p}, weight,
		"%d of its %d ways to and from other GPUs are slow, %s, and the others' %s: its links are down or retrain; reset "+
			"it and look at its module", n, of, spell(o.Value, unit), between(o, unit))
}

// oneWay finds pairs that are much slower one way, where there are too few to compare with.
func (f *findings) oneWay(stage string) {
	rates := f.r.Of(stage, "bandwidth")
	if len(rates) != 2 {
		return
	}
	for _, m := range rates {
		for _, back := range rates {
			if back.Subject == pairOf(m.Subject.To, m.Subject.component) && m.Value < 0.7*back.Value {
				f.add(degraded, "slow-pair", m.Subject, back.Value/max(m.Value, 1e-9),
					"%s, and %s the other way: link or switch port; swap or reset it", spell(m.Value, m.Unit),
					spell(back.Value, back.Unit))
			}
		}
	}
}

// knownNVLink compares with the data sheet where all links go to switches, so that any two GPUs can use all their
// links. If all ways of a host are slow there is one finding.
func (f *findings) knownNVLink(stage string, links map[subject]string) {
	switches := bySubject(f.r.Of("GPU state", "NVLinks to switches"))
	below, ways := map[string][]finding{}, map[string]int{}
	for _, m := range f.r.Of(stage, "bandwidth") {
		at := m.Subject
		known, ok := knownModel(f.modelOf(of(at.Host, at.Part)))
		if !ok || switches[of(at.Host, at.Part)].Value == 0 || links[at] != string(cuda.NVLink) {
			continue
		}
		ways[at.Host]++
		named := f.has("slow-pair", at) || f.has("slow-gpu-links", subject{component: at.component}) ||
			f.has("slow-gpu-links", subject{component: at.To})
		if m.Value < enoughNVLink*known.nvlink && !named {
			below[at.Host] = append(below[at.Host], finding{Severity: degraded, Code: "slow-pair", Subject: at,
				Weight: known.nvlink / max(m.Value, 1),
				Text: fmt.Sprintf("%s over NVLink, which is made for %.0f GB/s each way on a %s: look at how many of its links "+
					"are up", spell(m.Value, m.Unit), known.nvlink, known.name)})
		}
	}
	for host, list := range below {
		if n := ways[host]; 2*len(list) > n && n > 2 {
			f.add(degraded, "slow-nvlink", of(host, ""), list[0].Weight*float64(n),
				"%d of %d ways between its GPUs are slow: %s", len(list), n, list[0].Text)
			continue
		}
		f.list = append(f.list, list...)
	}
}
