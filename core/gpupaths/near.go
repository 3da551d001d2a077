package gpupaths

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Distance is how near a GPU and a network card are on the bus. NCCL_NET_GDR_LEVEL is the most at which the card is
// to reach the GPU's memory: one of these names, or its number. By default they are to have one root complex: beyond
// that, data go from processor to processor, and pinned memory is as near. LOC switches GPUDirect off.
type Distance int

// The distances, the nearest first.
const (
	LOC Distance = iota // on one board
	PIX                 // under one PCIe switch
	PXB                 // over several switches
	PHB                 // over the host bridge of one root complex
	SYS                 // over more than that
)

var distances = []string{"LOC", "PIX", "PXB", "PHB", "SYS"}

func (d Distance) String() string { return distances[d] }

// levelOf is the distance that a level of NCCL's allows. Links between GPUs, such as NVL, are nearer than any card.
func levelOf(level string) Distance {
	switch level {
	case "LOC", "NVL", "NVB", "C2C":
		return LOC
	case "PIX":
		return PIX
	case "PXB", "P2C", "PXN":
		return PXB
	case "SYS":
		return SYS
	}
	return PHB
}

// apart is the distance of two PCI devices by where they are in sysfs:
// /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0.
func apart(a, b string) Distance {
	p, q := strings.Split(a, "/"), strings.Split(b, "/")
	same := 0
	for same < min(len(p), len(q))-1 && p[same] == q[same] {
		same++
	}
	root := -1 // the last part that both have which is a root complex
	for i := range same {
		if strings.HasPrefix(p[i], "pci") {
			root = i
		}
	}
	switch {
	case root < 0:
		return SYS
	case same == root+1:
		return PHB
	case len(p)-same <= 2 && len(q)-same <= 2: // a port of the switch above each
		return PIX
	}
	return PXB
}

// sysfs is where the kernel says where devices are; tests have one of their own.
var sysfs = "/sys"

// WithSysfs has another directory say where devices are, until restore is called. It is for tests.
func WithSysfs(root string) (restore func()) {
	before := sysfs
	sysfs = root
	return func() { sysfs = before }
}

// placeOf is where a GPU is in sysfs, "" if that is not known.
func placeOf(d cuda.Driver, dev cuda.Device) string {
	bus, err := d.DeviceGetPCIBusId(dev)
	if err != nil {
		return ""
	}
	at, err := filepath.EvalSymlinks(filepath.Join(sysfs, "bus/pci/devices", strings.ToLower(bus)))
	if err != nil {
		return ""
	}
	return at
}

// away is how far a card, or the card of a port, is from a GPU in sysfs, if both are known there.
func away(gpu, card string) (d Distance, known bool) {
	card, _, _ = strings.Cut(card, ":")
	for _, class := range []string{"infiniband", "net"} {
		at, err := filepath.EvalSymlinks(filepath.Join(sysfs, "class", class, card, "device"))
		if err == nil && gpu != "" {
			return apart(gpu, at), true
		}
	}
	return SYS, false
}

// Near is how far cards are from a GPU, for transport.NetworkOptions; nil without a GPU.
func Near(d *gpu.Device) func(card string) int {
	if d == nil {
		return nil
	}
	at := placeOf(d.Driver(), d.Handle())
	return func(card string) int {
		x, _ := away(at, card)
		return int(x)
	}
}

// far is why cards over which data go are too far from a GPU in sysfs, nil if none is. With any, one of the cards is
// taken, and the nearest counts. What sysfs does not know counts as near.
func far(gpu string, cards []string, any bool, level string) error {
	most := levelOf(level)
	if most == LOC {
		return fmt.Errorf("NCCL_NET_GDR_LEVEL is %s", level)
	}
	worst, card := Distance(-1), ""
	for _, name := range cards {
		x, known := away(gpu, name)
		if !known {
			continue
		}
		if worst < 0 || any && x < worst || !any && x > worst {
			worst, card = x, name
		}
	}
	if worst <= most {
		return nil
	}
	which := "over which data go"
	if any {
		which = "the nearest card"
	}
	return fmt.Errorf("%s, %s, is %v from the GPU and may be %v: NCCL_NET_GDR_LEVEL=%v allows it", card, which, worst,
		most, worst)
}
