package gpupaths

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// bridgeSlots are where the slots of a bridge's queues lie. Where the transport is a transport.Placer,
// they are tried on the GPU, where network cards read and write them, and then in pinned memory, which
// a card moves too. A rank decides that for itself. Both ends of a pair are placed, or neither: then
// slots are copied, as by all other transports.
type bridgeSlots struct {
	placer transport.Placer // nil: no peer is connected by one
	onGPU  map[int]int      // by peer: offset in gpu
	onHost map[int]int      // by peer: offset in bridgeNet.memory, or in late
	gpu    *p2p.CardMemory
	late   *p2p.HostMemory // of peers that turned out not to be placed, if gpu was to have them
	addr   uint64          // of late

	candidates map[int]bool   // peers whose connections could be placed
	placed     map[int]bool   // as both agreed
	moved      map[int]bool   // those whose slots lie in late
	why        string         // why this rank has no placed slots, "" if it has some
	notGPU     map[int]string // by peer: why not on the GPU
	copies     map[int]string // by peer: why slots are copied that a Placer could move
}

// find looks which of the peers may be placed, and tries to have their slots on the GPU, where the cards that move them
// are near.
func (s *bridgeSlots) find(n *Net, agreed *paths.Agreement, peers []int, cfg *paths.Config) {
	s.onGPU, s.onHost, s.candidates, s.copies, s.notGPU = map[int]int{}, map[int]int{}, map[int]bool{}, map[int]string{},
		map[int]string{}
	bytes, at := 0, map[int]int{}
	gpu := placeOf(n.driver, n.dev)
	for _, r := range peers {
		p := agreed.Placer(r)
		shape := n.bridgeGeometry(n.rank, r)
		if p == nil {
			continue
		}
		if s.placer != nil && p != s.placer {
			s.copies[r] = "another peer has its slots moved by another network"
			continue
		}
		if l := n.bridge.limits; shape.SlotBytes != l.SlotBytes || shape.Slots != l.Slots {
			s.copies[r] = "they are smaller, as the ranks are no neighbours in rings and trees"
			continue
		}
		s.placer = p
		s.candidates[r] = true
		cards, known := agreed.Cards(r)
		if err := far(gpu, cards, !known, cfg.GDR.Level); err != nil {
			s.notGPU[r] = err.Error()
			continue
		}
		at[r] = bytes
		bytes += 2 * slotsBytes(shape)
	}
	if bytes == 0 {
		return
	}
	var err error
	s.gpu, err = p2p.NewCardMemory(n.config(bytes), cfg.GDR.DMABuf != "0")
	if err == nil {
		if _, err = s.placer.Register(s.gpu.Memory()); err != nil {
			err = errors.Join(err, s.gpu.Close())
			s.gpu = nil
		}
	}
	if err != nil {
		for r := range at {
			s.notGPU[r] = err.Error()
		}
		return
	}
	s.onGPU = at
}

// register has the transport know the bridge's pinned memory, if slots are to be placed there.
func (s *bridgeSlots) register(memory *p2p.HostMemory) {
	if len(s.notGPU) == 0 {
		return
	}
	if _, err := s.placer.Register(transport.Memory{Region: mem.Host(memory.Bytes())}); err != nil {
		first := slices.Min(slices.Collect(maps.Keys(s.notGPU)))
		s.why = fmt.Sprintf("not on the GPU: %s; not in pinned memory: %v", s.notGPU[first], err)
	}
}

// settle places the slots of a pair if neither rank's word is against it. Slots on the GPU that are not placed get host
// memory instead.
func (s *bridgeSlots) settle(n *Net, words []string) (err error) {
	s.placed, s.moved = map[int]bool{}, map[int]bool{}
	bytes := 0
	for r := range n.size { // in the order of ranks
		switch {
		case !s.candidates[r]:
			continue
		case words[n.rank] == "" && words[r] == "":
			s.placed[r] = true
			continue
		}
		who := n.rank
		if words[who] == "" {
			who = r
		}
		s.copies[r] = fmt.Sprintf("rank %d: %s", who, words[who])
		if _, on := s.onGPU[r]; on {
			delete(s.onGPU, r)
			s.onHost[r], s.moved[r] = bytes, true
			bytes += 2 * slotsBytes(n.bridgeGeometry(n.rank, r))
		}
	}
	if bytes == 0 {
		return nil
	}
	s.late = p2p.NewHost(n.config(bytes))
	if s.addr, err = s.late.Address(); err != nil {
		err = fmt.Errorf("memory for slots that are copied: %w", err)
	}
	return err
}

// at is n bytes of a peer's slots from an offset, for kernels and for the bridge.
func (s *bridgeSlots) at(b *bridgeNet, peer, offset, n int) (addr uint64, slots mem.Region) {
	if at, on := s.onGPU[peer]; on {
		slots = s.gpu.Memory().Slice(at+offset, n)
		return uint64(slots.Ptr()), slots
	}
	memory, addr := b.memory, b.addr
	if s.moved[peer] {
		memory, addr = s.late, s.addr
	}
	offset += s.onHost[peer]
	return addr + uint64(offset), mem.Host(memory.Bytes()).Slice(offset, n)
}

// about says where the slots for a peer lie, "" if there was nothing to choose.
func (s *bridgeSlots) about(peer int) string {
	_, on := s.onGPU[peer]
	switch {
	case s.copies[peer] != "":
		return "slots are copied: " + s.copies[peer]
	case !s.placed[peer]:
		return ""
	case on && s.gpu.Memory().DMABuf != nil:
		return "slots on the GPU, by dma-buf: GPUDirect"
	case on:
		return "slots on the GPU: GPUDirect"
	}
	return "slots in pinned memory, without copies; not on the GPU: " + s.notGPU[peer]
}

// bytes is how much of the GPU's memory the slots take.
func (s *bridgeSlots) bytes() int {
	if s.gpu == nil {
		return 0
	}
	return s.gpu.Bytes()
}

// close gives the memory back. No transport may know it any more.
func (s *bridgeSlots) close() error {
	var errs []error
	if s.gpu != nil {
		errs = append(errs, s.gpu.Close())
	}
	if s.late != nil {
		errs = append(errs, s.late.Close())
	}
	return errors.Join(errs...)
}
