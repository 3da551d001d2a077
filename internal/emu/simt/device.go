package simt

// A device is its multiprocessors and the grids that still have blocks to begin.
type device struct {
	sms     []sm
	queue   []*Grid
	started int // grids
}

// An sm is a multiprocessor: the room it has left.
type sm struct {
	number, threads, blocks, shared, registers int
}

func newDevice(s Shape) device {
	var d device
	for i := range s.SMs {
		d.sms = append(d.sms, newSM(s, i))
	}
	return d
}

func newSM(s Shape, number int) sm {
	return sm{number: number, threads: s.ThreadsPerSM, blocks: s.BlocksPerSM, shared: s.SharedPerSM,
		registers: RegistersPerSM}
}

// Hardware allocates threads in whole warps, each with its registers, and shared memory in
// pieces of 128 bytes, plus 1 KiB a block for itself (compute capability 8.0 and later).
const (
	sharedPiece  = 128
	sharedSystem = 1024
)

func (g *Grid) needs() (threads, shared, registers int) {
	threads = align(g.threads(), 32)
	return threads, align(g.shared(), sharedPiece) + sharedSystem, threads * align(g.Kernel.Registers, registerPiece)
}

// fits reports whether there is room for a block.
func (s *sm) fits(g *Grid) bool {
	threads, shared, registers := g.needs()
	return s.threads >= threads && s.blocks > 0 && s.shared >= shared && s.registers >= registers
}

// take makes room for a block that fits.
func (s *sm) take(g *Grid) {
	threads, shared, registers := g.needs()
	s.threads -= threads
	s.shared -= shared
	s.registers -= registers
	s.blocks--
}

func (s *sm) free(g *Grid) {
	threads, shared, registers := g.needs()
	s.threads += threads
	s.shared += shared
	s.registers += registers
	s.blocks++
}

// fill makes blocks resident while there is room, each grid's in the order of their
// numbers, and after all blocks of the grids before it in the queue, as hardware does.
//
// Source: Amert et al., GPU Scheduling on the NVIDIA TX2, RTSS 2017.
func (w *World) fill(number int) {
	d := &w.devices[number]
	for len(d.queue) > 0 {
		g := d.queue[0]
		if g.Cooperative && g.resident == 0 && !d.holds(g, g.blocks) {
			return
		}
		for g.resident < g.blocks {
			if !d.begin(g) {
				return
			}
		}
		d.queue = d.queue[1:]
	}
}

// begin makes a block of the grid resident, or all blocks of a cluster, if there is room.
func (d *device) begin(g *Grid) bool {
	n := g.cluster.size()
	if n > 1 && !d.holds(g, n) {
		return false
	}
	var c *cluster
	if n > 1 || g.Kernel.code.clusters {
		c = &cluster{grid: g}
	}
	for range n {
		s := d.freest(g)
		if s == nil {
			return false
		}
		s.take(g)
		newBlock(g, g.resident, s, c)
		g.resident++
	}
	if n > 1 {
		c.join()
	}
	return true
}

// freest is the multiprocessor with the most free threads among those that can take
// a block: blocks spread as on hardware.
func (d *device) freest(g *Grid) *sm {
	var best *sm
	for i := range d.sms {
		if s := &d.sms[i]; s.fits(g) && (best == nil || s.threads > best.threads) {
			best = s
		}
	}
	return best
}

// holds reports whether there is room for a number of blocks of a grid.
func (d *device) holds(g *Grid, blocks int) bool {
	n := 0
	for _, s := range d.sms {
		for ; n < blocks && s.fits(g); n++ {
			s.take(g)
		}
	}
	return n == blocks
}
