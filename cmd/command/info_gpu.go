package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// emulated is the number of devices of "-device emu".
const emulated = 4

// gpuDriver opens the driver that a -device flag names. Where CUDA is not there the
// error is a *cuda.Unavailable, which the caller may accept for "auto".
func gpuDriver(device, library string) (cuda.Driver, error) {
	switch device {
	case "auto", "cuda":
		return cuda.Open(library)
	case "emu":
		return cudaemu.New(cudaemu.Config{Devices: emulated, Plain: true})
	}
	return nil, cli.Usagef("-device %q is none of auto, cuda, emu", device)
}

// A gpuInventory is the driver's account of its devices.
type gpuInventory struct {
	Driver   string       `json:"driver"` // "cuda" or "emu"
	Version  string       `json:"version"`
	Devices  []gpuDevice  `json:"devices"`
	Links    [][]int      `json:"links,omitempty"` // from a row's device: 0 is the best kind, -1 none
	Kinds    [][]string   `json:"link_kinds,omitempty"`
	Features []gpuFeature `json:"features"`
	Problems []string     `json:"problems,omitempty"`
}

type gpuDevice struct {
	Name       string `json:"name"`
	Capability string `json:"capability"`
	SMs        int    `json:"sms"`
	Memory     int    `json:"memory"` // bytes
	PCI        string `json:"pci"`
	UUID       string `json:"uuid"`
}

type gpuFeature struct {
	Name   string `json:"name"`
	Has    string `json:"has"` // yes, no, unknown
	Reason string `json:"reason,omitempty"`
}

// gpus looks for the devices of a driver.
func (v *inventory) gpus(device, library string) error {
	d, err := gpuDriver(device, library)
	if missing := (*cuda.Unavailable)(nil); errors.As(err, &missing) {
		v.NoGPU = err.Error()
		v.line("gpu", "none can be used: %v", err)
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
	g := &gpuInventory{Driver: about.Driver, Version: about.VersionString(), Problems: about.Problems}
	v.GPU = g
	kind := "driver of CUDA " + g.Version
	if g.Driver == "emu" {
		kind = "emulated " + kind + ": executes the same kernels, slowly; measures nothing"
	}
	v.line("gpu", "%s", kind)
	for _, a := range about.Devices {
		dev := gpuDevice{a.Name, fmt.Sprintf("%d.%d", a.Major, a.Minor), a.SMs, a.Memory, a.PCI, a.UUID}
		g.Devices = append(g.Devices, dev)
		v.line(fmt.Sprintf("gpu %d", a.Ordinal), "%s, compute capability %s, %d multiprocessors, %.1f GiB, %s, %s",
			dev.Name, dev.Capability, dev.SMs, float64(dev.Memory)/(1<<30), dev.PCI, dev.UUID)
	}
	v.gpuLinks(about.Peers)
	var has []string
	for _, f := range cuda.Features() {
		found := cuda.Probe(d, f)
		g.Features = append(g.Features, gpuFeature{f.Name, found.Answer.String(), found.Reason})
		if found.Answer == cuda.Yes {
			has = append(has, f.Name)
		} else {
			v.line("gpu lacks", "%v", found)
		}
	}
	v.line("gpu has", "%s", strings.Join(has, ", "))
	for _, p := range g.Problems {
		v.line("gpu problem", "%s", p)
	}
	return nil
}

// gpuLinks prints which devices reach each other's memory, and how.
func (v *inventory) gpuLinks(peers [][]cuda.Peer) {
	if len(peers) < 2 {
		return
	}
	var without []string
	ranks, kinds := map[int]bool{}, map[string]bool{}
	for i, row := range peers {
		links, names := make([]int, len(row)), make([]string, len(row))
		for j, p := range row {
			names[j] = string(p.Link)
			switch {
			case i == j:
			case p.Access:
				ranks[p.Rank], links[j], kinds[names[j]] = true, p.Rank, true
			default:
				without, links[j] = append(without, fmt.Sprintf("%d→%d", i, j)), -1
			}
		}
		v.GPU.Links, v.GPU.Kinds = append(v.GPU.Links, links), append(v.GPU.Kinds, names)
	}
	line, over := v.line, "over "+strings.Join(slices.Sorted(maps.Keys(kinds)), " or ")
	pairs := len(peers) * (len(peers) - 1)
	switch {
	case len(without) == pairs:
		line("gpu links", "none: no device reaches another's memory; data go through the host's")
		return
	case len(without) > 0:
		line("gpu links", "%s, all but %s; those go through the host's memory", over, strings.Join(without, " "))
	default:
		line("gpu links", "every device reaches every other's memory, %s", over)
	}
	if !slices.Equal(slices.Collect(maps.Keys(kinds)), []string{string(cuda.NVLink)}) {
		line("", "lines of 128 bytes come whole over NVLink alone: elsewhere they may tear, and have digests "+
			"(RINGO_LINES=1 sends them without)")
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
