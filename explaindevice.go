package ringo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/kernels"
)

// GPUs are what ExplainDevice is asked about. The zero GPUs are those of the
// built-in plan.
type GPUs struct {
	Name       string // "NVIDIA H200" if empty
	Path       string // of ranks on one host: "p2p" if empty, "host memory" or "bridge"
	Registered bool   // memory is
}

// ExplainDevice is Explain for GPU memory. cfg gives Algo, Deterministic and Plan. A kernel that
// has no steps has no Schedule.
func ExplainDevice(kind Kind, n, local, bytes, root int, gpus GPUs, cfg Config) (Choice, error) {
	ch, err := Explain(kind, n, local, bytes, root, cfg)
	if err != nil {
		return ch, err
	}
	path := gpuPath(max(0, slices.Index(gpuPathNames[:], cmp.Or(gpus.Path, gpuPathNames[overP2P]))))
	if path == noPath {
		return ch, fmt.Errorf("%w: path %q is none of p2p, host memory, bridge", ErrInvalid, gpus.Path)
	}
	source := loadPlan(cfg.Plan)
	given, err := source.parse()
	if err != nil {
		return ch, err
	}
	f := &fabric{near: path, far: path, topo: topology{ranks: n, local: n}}
	if local > 1 && n%local == 0 {
		f.topo.local = local
	}
	if f.topo.nodes() > 1 {
		f.far = overBridge
	}
	for range n {
		f.gpus = append(f.gpus, cmp.Or(gpus.Name, "NVIDIA H200"))
	}
	p := planner{topo: f.topo, can: paperKernels(f.far == overP2P && n >= 2 && n <= grid.MaxDirect)}
	p.forced, _ = parseAlgo(cfg.Algo)
	p.rows = rowsFor(given, f, p.can)

	a := p.choose(kind, bytes, gpus.Registered)
	ch.Algo, ch.Reason, ch.Schedule, ch.Then = a.String(), p.because(kind, bytes, gpus.Registered), nil, nil
	if cfg.Deterministic != "" && orderMatters(kind, Float32, kernels.KindSum, n) {
		switch ordered := p.orderly(kind, bytes, gpus.Registered, true, false); ordered {
		case algoByRank:
			ch.byRank(f.topo, root, wholeOnDevice)
			return ch, nil
		case a:
		default:
			ch.Algo, ch.Reason = ordered.String(), "Deterministic: a kernel that combines in order of rank"
			return ch, nil
		}
	}
	ch.Others = slices.DeleteFunc(p.names(kind, bytes, gpus.Registered), func(name string) bool { return name == ch.Algo })
	if _, ok := p.kernel(kind, a, bytes); !ok && a != algoWindow && a != algoCopies {
		ch.Schedule = programKey{kind: kind, algo: a, peer: int32(root)}.schedule(f.topo)
	}
	return ch, nil
}

// paperKernels is the kernelSet of an engine that is not there: all or none.
type paperKernels bool

func (k paperKernels) CanDirect() bool { return bool(k) }

func (k paperKernels) CanWindow(d grid.Direct) bool {
	in, out := d.InWindow()
	return bool(k) && (in || out)
}

func (k paperKernels) CanCopy(d grid.Direct) bool {
	return k.CanWindow(d) && d.ByCopies()
}
