package gpupaths

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A Distance is how near a GPU and a network card are on the bus. NCCL_NET_GDR_LEVEL says at most
// how far they may be apart so that the card gets to the GPU's memory: one of these names, or its
// number. By default they are to have one root complex: beyond that, data go from processor to
// processor, and pinned memory is as near. LOC switches GPUDirect off.
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

// levelOf is the distance that a level of NCCL's allows. No card is as near as links between GPUs are.
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

// far is why the cards of a network are too far from a GPU, nil if the nearest is not. What sysfs
// does not know counts as near.
func far(d cuda.Driver, dev cuda.Device, cards []string, level string) error {
	most := levelOf(level)
	if most == LOC {
		return fmt.Errorf("NCCL_NET_GDR_LEVEL is %s", level)
	}
	bus, err := d.DeviceGetPCIBusId(dev)
	if err != nil {
		return err
	}
	gpu, err := filepath.EvalSymlinks("/sys/bus/pci/devices/" + strings.ToLower(bus))
	if err != nil {
		return nil
	}
	nearest, card := Distance(-1), ""
	for _, name := range cards {
		name, _, _ = strings.Cut(name, ":") // a port of it
		for _, class := range []string{"infiniband", "net"} {
			at, err := filepath.EvalSymlinks(filepath.Join("/sys/class", class, name, "device"))
			if err != nil {
				continue
			}
			if x := apart(gpu, at); nearest < 0 || x < nearest {
				nearest, card = x, name
			}
		}
	}
	if nearest > most {
		return fmt.Errorf("%s, the nearest card, is %v from the GPU and may be %v: NCCL_NET_GDR_LEVEL=%v allows it", card, nearest, most, nearest)
	}
	return nil
}
