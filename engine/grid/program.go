package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
)

// A Program is the column of one rank in a schedule, on its device. It belongs to
// its Engine and ends with it.
type Program struct {
	shape sched.Shape
	steps []step
	ends  []end
	needs []*need

	lanes, slots int // the fewest of all connections of the schedule, on any rank
	slice, piece int // bytes at most

	independent bool
	note        int // bytes of a note, if the program is a message that may go as one

	image uintptr // ends, then steps, on the device
	tmp   uintptr // Tmp of all lanes
}

// Shape is the shape of the schedule.
func (p *Program) Shape() sched.Shape { return p.shape }

// Lanes is the most blocks that carry out the program.
func (p *Program) Lanes() int { return p.lanes }

// message reports whether the program is a single send or receive, see RunMessages.
func (p *Program) message() bool {
	return p.shape.In+p.shape.Out == 1 && len(p.steps) == 1 && len(p.ends) == 1
}

// independence reports whether the steps may happen in any order, and side by side. Each step only sends from In, or
// receives into Out, or copies from one to the other, and no two send to the same peer, or receive from the same one.
// So the order makes no difference to a peer, whichever order its own steps have. A single message gains nothing.
func (p *Program) independence() bool {
	peers := 0
	for _, s := range p.steps {
		if s.recv >= 0 {
			peers++
		}
		if s.send >= 0 {
			peers++
		}
		if s.recv >= 0 && (s.send >= 0 || s.src != uint8(sched.None)) || s.src > uint8(sched.In) ||
			s.dst != uint8(sched.None) && s.dst != uint8(sched.Out) {
			return false
		}
	}
	return peers == len(p.ends) && peers > 1
}

// A step is Step of kernels/cuda/run.cu.
type step struct {
	recv, send         int16 // index in ends, -1 for nobody
	src, dst           uint8 // sched.Buffer
	_                  uint16
	srcChunk, dstChunk uint32
}

const (
	stepBytes = 16
	portBytes = 72 // an end in shared memory
)

// maxTmp is the most device memory of a program's scratch. A schedule with much
// scratch is carried out in smaller pieces.
const maxTmp = 8 << 20

// Compile makes the program of a rank: it asks for the connections, all Sends
// before all Recvs, and copies the steps to the device. It may allocate device memory,
// takes some 100 µs, and is allowed while streams are capturing. Running the program
// later neither connects nor copies.
func (b *base) Compile(s sched.Schedule, r sched.Rank) (*Program, error) {
	p := &Program{shape: s.Shape()}
	if p.shape.Ranks != b.ranks {
		return nil, fmt.Errorf("grid: a schedule of %d ranks in a communicator of %d", p.shape.Ranks, b.ranks)
	}
	steps := make([]sched.Step, s.Len(r))
	for i := range steps {
		steps[i] = s.At(r, i)
		if steps[i].Src.Buf == sched.None && steps[i].Dst.Buf == sched.None {
			return nil, fmt.Errorf("grid: step %d of rank %d has neither source nor destination", i, r)
		}
	}
	p.shapeOf(s, b.links)
	if err := p.connect(b, steps); err != nil {
		return nil, err
	}
	if err := p.upload(b); err != nil {
		return nil, err
	}
	return p, nil
}

// shapeOf sets lanes, slots, slice and piece from the whole schedule, so that all
// ranks find the same.
func (p *Program) shapeOf(s sched.Schedule, links Links) {
	const none = 1 << 30
	p.lanes, p.slots, p.slice = none, none, none
	pairs := map[[2]sched.Rank]bool{}
	for from := range sched.Rank(p.shape.Ranks) {
		for i := range s.Len(from) {
			to := s.At(from, i).Send // receives are of the same pairs, except in a lone message
			if pair := [2]sched.Rank{from, to}; to != sched.Nobody && !pairs[pair] {
				pairs[pair] = true
				g := links.Geometry(from, to)
				p.lanes, p.slots, p.slice = min(p.lanes, g.Lanes), min(p.slots, g.Slots), min(p.slice, g.SlotBytes)
			}
		}
	}
	if len(pairs) == 0 { // nothing but copies
		p.lanes, p.slots, p.slice = MaxLanes, 2, 64<<10
	}
	p.piece = p.slice * (p.slots / 2)
	if p.shape.Tmp > 0 {
		p.piece = max(128, min(p.piece, maxTmp/(p.lanes*p.shape.Tmp)&^127))
		p.slice = min(p.slice, p.piece)
	}
}

// connect makes the connections and translates the steps.
func (p *Program) connect(b *base, steps []sched.Step) error {
	p.steps = make([]step, len(steps))
	for i, t := range steps {
		p.steps[i] = step{
			recv: -1, send: -1,
			src: uint8(t.Src.Buf), dst: uint8(t.Dst.Buf),
			srcChunk: uint32(t.Src.Chunk), dstChunk: uint32(t.Dst.Chunk),
		}
	}
	for _, sends := range []bool{true, false} {
		index := map[sched.Rank]int16{}
		for i, t := range steps {
			peer, at := t.Recv, &p.steps[i].recv
			if sends {
				peer, at = t.Send, &p.steps[i].send
			}
			if peer == sched.Nobody {
				continue
			}
			k, ok := index[peer]
			if !ok {
				x, err := b.end(peer, sends)
				if err != nil {
					return err
				}
				k = int16(len(p.ends))
				index[peer] = k
				p.ends = append(p.ends, x)
				if n := b.needs[endKey{peer, sends}]; n != nil {
					p.needs = append(p.needs, n)
				}
			}
			*at = k
		}
	}
	if p.message() { // the schedule does not say who receives
		from, to := b.rank, steps[0].Send
		if to == sched.Nobody {
			from, to = steps[0].Recv, b.rank
		}
		g := b.links.Geometry(from, to)
		p.lanes, p.slots, p.slice, p.piece = g.Lanes, g.Slots, g.SlotBytes, g.SlotBytes*(g.Slots/2)
		p.note = g.NoteBytes / lineBytes * lineData
	}
	p.independent = p.independence()
	if need := p.shared(); need > b.maxShared {
		return &TooLongError{Steps: len(p.steps), Peers: len(p.ends), Bytes: need, Have: b.maxShared}
	}
	return nil
}

// shared is the size of a block's shared memory.
func (p *Program) shared() int { return len(p.ends)*portBytes + len(p.steps)*stepBytes }

// A TooLongError says that a program does not fit on a multiprocessor.
type TooLongError struct {
	Steps, Peers, Bytes, Have int
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("grid: a program of %d steps with %d connections takes %d bytes of shared memory, and the device "+
		"has %d: take another algorithm",
		e.Steps, e.Peers, e.Bytes, e.Have)
}

func (p *Program) upload(b *base) error {
	return b.quietly(func() (err error) {
		image := append(bytesOf(p.ends), bytesOf(p.steps)...)
		if p.image, err = b.carve(len(image)); err != nil {
			return err
		}
		if p.shape.Tmp > 0 {
			if p.tmp, err = b.tmp.AtLeast(p.lanes * p.shape.Tmp * p.piece); err != nil {
				return err
			}
		}
		return b.write(p.image, image)
	})
}
