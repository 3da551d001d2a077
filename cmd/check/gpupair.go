package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/internal/cuda"
)

// measurePairs measures each pair of the host's GPUs, both ways. Pairs that have no GPU in common are measured at
// once where switches join them, and otherwise one after the other.
func measurePairs(ctx context.Context, j *job, s *gpuSet) (list []measurement, err error) {
	if len(s.gpus) < 2 {
		return nil, skip("there is one GPU")
	}
	at, e := j.Host(), s.effort(j.cfg.Full)
	var mu sync.Mutex                // of what follows, and of s.gpus
	var failed []measurement         // in any order
	of := map[[2]int][]measurement{} // by pair
	plan := planTournament(len(s.gpus), 0)
	for round := 0; round < plan.Rounds && ctx.Err() == nil; round++ {
		var wg sync.WaitGroup
		for i, a := range s.gpus {
			peer := plan.Peer(i, round)
			if peer < i || a == nil || s.gpus[peer] == nil {
				continue
			}
			b := s.gpus[peer]
			wg.Go(func() {
				found, err := measurePair(ctx, at, a, b, e)
				mu.Lock()
				defer mu.Unlock()
				of[[2]int{i, peer}] = found
				if err != nil && !outOfTime(ctx, err) {
					failed = append(failed, s.blame(at, a, b, err)...)
				}
			})
			if !s.switched(i, peer) {
				wg.Wait()
			}
		}
		wg.Wait()
	}
	for i := range s.gpus {
		for k := i + 1; k < len(s.gpus); k++ {
			list = append(list, of[[2]int{i, k}]...)
		}
	}
	return append(list, failed...), ctx.Err()
}

// switched says whether two GPUs are joined by NVLink, where pairs do not share a way.
func (s *gpuSet) switched(i, k int) bool {
	a, err := s.driver.DeviceGet(i)
	b, err2 := s.driver.DeviceGet(k)
	if err != nil || err2 != nil {
		return false
	}
	link, err := cuda.LinkBetween(s.driver, a, b)
	return err == nil && link == cuda.NVLink
}

// blame gives up the GPU that made a pair fail: the one that hangs or that the driver cannot use any more, or both if
// neither shows a fault.
func (s *gpuSet) blame(host string, a, b *meter.GPU, err error) (list []measurement) {
	for _, g := range []*meter.GPU{a, b} {
		if e := g.Health(); e != nil {
			list = append(list, s.drop(host, g.Number, e))
		}
	}
	if list == nil {
		at := pairOf(component{host, gpuName(a.Number)}, component{host, gpuName(b.Number)})
		what := "error"
		if errors.Is(err, cuda.ErrOutOfMemory) {
			what = "busy"
		}
		list = append(list, measurement{Subject: at, Quantity: what, Text: firstLine(err.Error())})
	}
	return list
}

func measurePair(ctx context.Context, host string, a, b *meter.GPU, e effort) (list []measurement, err error) {
	p, err := meter.OpenPair(a, b, e.sent)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for i := range 2 {
		w, err := p.Direction(ctx, i, e.times)
		if err != nil {
			return list, err
		}
		list = append(list, wayMeasured(host, &w)...)
	}
	both, err := p.Both(ctx, e.times)
	if err != nil {
		return list, err
	}
	at := pairOf(component{host, gpuName(a.Number)}, component{host, gpuName(b.Number)})
	return append(list, measurement{Subject: at, Quantity: "both ways", Value: both / gbps, Unit: "GB/s"}), nil
}

func wayMeasured(host string, w *meter.Direction) []measurement {
	at := pairOf(component{host, gpuName(w.From)}, component{host, gpuName(w.To)})
	list := []measurement{
		{Subject: at, Quantity: "link", Text: cmp.Or(string(w.Link), "none")},
		{Subject: at, Quantity: "bandwidth", Value: w.Rate / gbps, Unit: "GB/s"},
		{Subject: at, Quantity: "wrong words", Value: float64(w.Wrong)},
	}
	if w.Access {
		list = append(list, measurement{Subject: at, Quantity: "latency", Value: float64(w.Latency.Nanoseconds()) / 1e3,
			Unit: "us"})
	}
	if w.Lines.Seen > 1 {
		list = append(list, measurement{Subject: at, Quantity: "torn lines", Value: float64(w.Lines.Torn),
			Text: fmt.Sprintf("%d beside %d", w.Lines.Old, w.Lines.New)})
	}
	return list
}
