package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/cudaemu"
)

// emulated is how many devices "-device emu" has.
const emulated = 4

// gpuDriver opens the driver that a -device flag names. It is not an error for
// "auto" that there is none: then err is a *cuda.Unavailable.
func gpuDriver(device, library string) (cuda.Driver, error) {
	switch device {
	case "auto", "cuda":
		return cuda.Open(library)
	case "emu":
		return cudaemu.New(cudaemu.Config{Devices: emulated, Plain: true})
	}
	return nil, cli.Usagef("-device %q is none of auto, cuda, emu", device)
}

// gpus writes what the driver says about its devices.
func gpus(line func(key, format string, a ...any), device, library string) error {
	d, err := gpuDriver(device, library)
	if missing := (*cuda.Unavailable)(nil); errors.As(err, &missing) {
		line("gpu", "none can be used: %v", err)
		if device == "cuda" {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	if m, ok := d.(*cudaemu.Machine); ok {
		defer m.Close()
	}
	about := cuda.Describe(d)
	kind := "driver of CUDA " + about.VersionString()
	if about.Driver == "emu" {
		kind = "emulated " + kind + ": executes the same kernels, slowly; measures nothing"
	}
	line("gpu", "%s", kind)
	for _, g := range about.Devices {
		line(fmt.Sprintf("gpu %d", g.Ordinal), "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB, %s, %s",
			g.Name, g.Major, g.Minor, g.SMs, float64(g.Memory)/(1<<30), g.PCI, g.UUID)
	}
	gpuLinks(line, about.Peers)
	var has []string
	for _, f := range cuda.Features() {
		switch found := cuda.Probe(d, f); found.Answer {
		case cuda.Yes:
			has = append(has, f.Name)
		default:
			line("gpu lacks", "%v", found)
		}
	}
	line("gpu has", "%s", strings.Join(has, ", "))
	for _, p := range about.Problems {
		line("gpu problem", "%s", p)
	}
	return nil
}

// gpuLinks says which devices reach each other's memory.
func gpuLinks(line func(key, format string, a ...any), peers [][]cuda.Peer) {
	if len(peers) < 2 {
		return
	}
	var without []string
	ranks := map[int]bool{}
	for i, row := range peers {
		for j, p := range row {
			switch {
			case i == j:
			case p.Access:
				ranks[p.Rank] = true
			default:
				without = append(without, fmt.Sprintf("%d→%d", i, j))
			}
		}
	}
	pairs := len(peers) * (len(peers) - 1)
	switch {
	case len(without) == pairs:
		line("gpu links", "none: no device reaches another's memory; data go through the host's")
		return
	case len(without) > 0:
		line("gpu links", "all but %s; those go through the host's memory", strings.Join(without, " "))
	case len(ranks) == 1:
		line("gpu links", "every device reaches every other's memory, all alike")
		return
	default:
		line("gpu links", "every device reaches every other's memory")
	}
	if len(ranks) > 1 {
		for i, row := range peers {
			var b strings.Builder
			for j, p := range row {
				switch {
				case i == j:
					b.WriteString("  ·")
				case p.Access:
					fmt.Fprintf(&b, "%3d", p.Rank)
				default:
					b.WriteString("  -")
				}
			}
			line(fmt.Sprintf("  from %d", i), "%s   (0 is the best kind of link)", b.String())
		}
	}
}
