package gpupaths

import (
	"fmt"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// This file has the shapes of queues, and what Describe says of them and of GPUs that ranks share.

// A geometry is the shapes of the queues of each kind of path, the same on all ranks.
type geometry struct {
	boards map[int]boards // by the number of ranks of a host
	near   grid.Geometry  // of bridges between ranks that are close, see hosts.close
	far    grid.Geometry  // of other bridges
}

// boards are the queues between the ranks of one host.
type boards struct {
	device grid.Board // P2P: in GPU memory
	pinned grid.Board // in host memory
}

// bridgeBytes is the most pinned memory that a rank has for bridges to ranks that are close,
// and for others, unless there are very many.
const bridgeBytes = 32 << 20

// geometryOf is the geometry for ranks on hosts of at least so many cores. Schedules have up to most lanes, each with
// a block.
func geometryOf(h *hosts, cores, most int) geometry {
	g := geometry{boards: map[int]boards{}}
	for _, list := range h.ranks {
		n := len(list)
		b := boards{
			device: grid.DefaultBoard(n),
			pinned: grid.Board{
				Ranks:     n,
				MailBytes: grid.TornMailBytes(n),
				Torn:      true,
				Near:      grid.Geometry{Lanes: 16, Slots: 4, SlotBytes: 64 << 10},
				Far:       grid.Geometry{Lanes: max(1, min(8, 32/n)), Slots: 4, SlotBytes: 64 << 10},
			},
		}
		if len(h.ranks) > 1 {
			b.device.MailBytes, b.pinned.MailBytes = 0, 0 // direct kernels are for one host
		}
		for _, q := range []*grid.Geometry{&b.device.Near, &b.device.Far, &b.pinned.Near, &b.pinned.Far} {
			q.Lanes = min(q.Lanes, most)
		}
		deepen(&b.device.Near, grid.DefaultBoard(n).Near.Lanes)
		deepen(&b.device.Far, grid.DefaultBoard(n).Far.Lanes)
		g.boards[n] = b
	}
	closest, others := h.across()
	if len(h.ranks) == 1 { // some pairs may need a bridge all the same
		closest, others = len(h.seats)-1, len(h.seats)-1
	}
	// A lane has a goroutine for each direction.
	lanes := max(4, min(16, cores/(2*h.most())))
	g.near = bridgeShape(bridgeBytes, closest, min(lanes, most), 4)
	g.far = bridgeShape(bridgeBytes, others, min(4, most), 1)
	return g
}

// The queues of a lane that moves an eighth of a link. On two H200s larger slots are as good for collectives as more of
// them, and messages between two ranks are 1.5 times as fast.
const (
	deepSlots     = 8
	deepSlotBytes = 128 << 10
)

// deepen gives the lanes the memory of those that are missing from lanes: where few blocks move as much as many, a lane
// has more under way.
func deepen(g *grid.Geometry, lanes int) {
	for all := g.Slots * g.SlotBytes * lanes; 2*g.Slots*g.SlotBytes*g.Lanes <= all; {
		switch {
		case 2*g.SlotBytes <= deepSlotBytes:
			g.SlotBytes *= 2
		case g.Slots < deepSlots:
			g.Slots *= 2
		default:
			return
		}
	}
}

// bridgeShape is the shape of the queues of bridges to a number of peers, both ways, that
// take at most this much memory: first with fewer and smaller slots, then with fewer lanes as far
// as least, then with still smaller slots.
func bridgeShape(bytes, peers, lanes, least int) grid.Geometry {
	g := grid.Geometry{Lanes: lanes, Slots: 8, SlotBytes: 128 << 10}
	fits := func() bool { return 2*peers*laneSetBytes(g) <= bytes }
	for g.SlotBytes > 64<<10 && !fits() { // as large as those between GPUs of a host
		if g.Slots > 4 {
			g.Slots /= 2
		} else {
			g.SlotBytes /= 2
		}
	}
	for g.Lanes > least && !fits() {
		g.Lanes--
	}
	for g.SlotBytes > 16<<10 && !fits() {
		g.SlotBytes /= 2
	}
	return g
}

// laneSetBytes is the memory of one direction of a bridge.
func laneSetBytes(g grid.Geometry) int { return headsBytes(g) + slotsBytes(g) }

// Describe fills in the part of a profile that is about the rank's GPU.
func Describe(p *paths.Profile, d *gpu.Device) error {
	var err error
	if p.GPU, err = d.Name(); err != nil {
		return err
	}
	uuid, err := d.Driver().DeviceGetUuid(d.Handle())
	if err != nil {
		return err
	}
	p.GPUID = fmt.Sprintf("%x", uuid)
	if p.Processors, err = d.Driver().DeviceGetAttribute(cuda.AttrMultiprocessorCount, d.Handle()); err != nil {
		return err
	}
	p.BulkCopies, err = grid.HasBulk(d.Driver(), d.Handle())
	return err
}

// sharingNotes is a line that says so if ranks share a GPU.
func sharingNotes(all []paths.Profile) []string {
	n := choice.Sharing(members(all))
	if n < 2 {
		return nil
	}
	return []string{fmt.Sprintf("GPU memory: up to %d ranks share a GPU, each with a part of its multiprocessors; those "+
		"of different processes take turns", n)}
}
