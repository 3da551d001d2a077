package weakmem

import (
	"fmt"
	"testing"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// BenchmarkAccess streams through memory as a kernel does: two loads and a
// store of neighbouring lanes. lanes/s counts the accesses of lanes.
func BenchmarkAccess(b *testing.B) {
	for _, plain := range []bool{false, true} {
		for _, size := range []int{2, 4, 8, 16} {
			b.Run(fmt.Sprintf("plain=%v/%d", plain, size), func(b *testing.B) {
				const n = 1 << 22
				m := New(Config{Plain: plain})
				for i := range uint64(3) {
					_ = m.Map(Allocation{Addr: (i + 1) << 32, Data: make([]byte, n), Written: make([]uint64, n/64), Name: "m"})
				}
				c, _ := m.Set(1<<32, []byte{1}, n, Clock{})
				c, _ = m.Set(2<<32, []byte{1}, n, c)
				element, vector := size, 1
				if size == 16 {
					element, vector = 4, 4
				}
				var regs [4]alu.Lanes
				var list []*alu.Lanes
				for i := range vector {
					list = append(list, &regs[i])
				}
				var addr alu.Lanes
				at := n
				var g *Grid
				var k *Block
				for b.Loop() {
					if at+32*size > n {
						if g != nil {
							k.End()
							c = g.End()
						}
						at = 0
						g = m.Begin(0, "k", c)
						k = g.Block([3]int{}, [3]int{256, 1, 1}, 0)
					}
					warp := at / (32 * size) % 8
					for i := range uint64(3) {
						for l := range addr {
							addr[l] = (i+1)<<32 + uint64(at+l*size)
						}
						var f *Fault
						if i < 2 {
							f = k.Load(warp, ^uint32(0), &addr, element, list, How{Line: int(i)})
						} else {
							f = k.Store(warp, ^uint32(0), &addr, element, list, How{Line: int(i)})
						}
						if f != nil {
							b.Fatal(f)
						}
						m.Tick()
					}
					at += 32 * size
				}
				b.ReportMetric(96*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlanes/s")
			})
		}
	}
}

// BenchmarkSync is what kernels do besides streaming, per warp.
func BenchmarkSync(b *testing.B) {
	type state struct {
		m    *Memory
		k    *Block
		i    uint64
		regs [4]alu.Lanes
		addr alu.Lanes
	}
	all := ^uint32(0)
	threads := []uint32{all, all, all, all, all, all, all, all}
	volatile := How{Order: Relaxed, Scope: System, Line: 1}
	vector := func(s *state, store bool, how How) *Fault {
		for l := range s.addr {
			s.addr[l] = 1<<32 + s.i%256*512 + uint64(l*16)
		}
		list := []*alu.Lanes{&s.regs[0], &s.regs[1], &s.regs[2], &s.regs[3]}
		if store {
			return s.k.Store(0, all, &s.addr, 4, list, how)
		}
		return s.k.Load(0, all, &s.addr, 4, list, how)
	}
	for _, bench := range []struct {
		name string
		does func(s *state) *Fault
	}{
		{"volatile vector store", func(s *state) *Fault { return vector(s, true, volatile) }},
		{"volatile vector load", func(s *state) *Fault { return vector(s, false, volatile) }},
		{"volatile vector store after a fence", func(s *state) *Fault {
			if s.i == 0 {
				s.k.Fence(0, all, How{Order: AcqRel, Scope: System})
			}
			return vector(s, true, volatile)
		}},
		{"volatile vector load of a released place", func(s *state) *Fault {
			if s.i == 0 {
				s.k.Fence(1, all, How{Order: AcqRel, Scope: System})
				_ = s.k.Store(1, 1, row(1<<32, 0), 4, []*alu.Lanes{&s.regs[0]}, volatile)
			}
			return vector(s, false, volatile)
		}},
		{"poll", func(s *state) *Fault { return load(s.k, 0, 1, 1<<32, How{Order: Acquire, Scope: GPU, Line: 3}) }},
		{"fence of all lanes", func(s *state) *Fault { s.k.Fence(0, all, How{Order: AcqRel, Scope: System}); return nil }},
		{"atomic of all lanes", func(s *state) *Fault {
			return s.k.Atomic(0, all, row(1<<32, 0), 4, nil, func(_ int, old uint64) uint64 { return old + 1 }, volatile)
		}},
		{"atomic of all lanes, acq_rel", func(s *state) *Fault {
			return s.k.Atomic(0, all, row(1<<32, 0), 4, nil, func(_ int, old uint64) uint64 { return old + 1 },
				How{Order: AcqRel, Scope: GPU})
		}},
		{"sync warp", func(s *state) *Fault { s.k.SyncWarp(0, all); return nil }},
		{"sync half a warp", func(s *state) *Fault { s.k.SyncWarp(0, 0xffff); return nil }},
		{"store and load shared memory with barriers, 8 warps", func(s *state) *Fault {
			for w := range 8 {
				if f := store(s.k, w, all, uint64(w*128), How{Shared: true}); f != nil {
					return f
				}
			}
			s.k.Barrier(threads)
			for w := range 8 {
				if f := load(s.k, w, all, uint64((w+1)%8*128), How{Shared: true}); f != nil {
					return f
				}
			}
			s.k.Barrier(threads)
			return nil
		}},
		{"stride of 3 words", func(s *state) *Fault {
			return s.k.Store(0, all, row(1<<32+s.i%256*512, 12), 4, []*alu.Lanes{&s.regs[0]}, How{})
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := &state{m: New(Config{Report: func(*Fault) bool { return true }})}
			_ = s.m.Map(Allocation{Addr: 1 << 32, Data: make([]byte, 1<<20), Name: "m"})
			s.k = s.m.Begin(0, "k", Clock{}).Block([3]int{}, [3]int{256, 1, 1}, 4096)
			for b.Loop() {
				if f := bench.does(s); f != nil {
					b.Fatal(f)
				}
				s.i++
				s.m.Tick()
			}
		})
	}
}

// BenchmarkOldLoads is strong loads and stores of a warp with Config.OldLoads.
func BenchmarkOldLoads(b *testing.B) {
	m := New(Config{OldLoads: true})
	_ = m.Map(Allocation{Addr: 1 << 32, Data: make([]byte, 1<<20), Name: "m"})
	k := m.Begin(0, "k", Clock{}).Block([3]int{}, [3]int{256, 1, 1}, 0)
	how := How{Order: Relaxed, Scope: System, Line: 1}
	for i := uint64(0); b.Loop(); i++ {
		_ = store(k, 0, ^uint32(0), 1<<32+i%64*128, how)
		for range 4 { // a poll
			_ = load(k, 1, 1, 1<<32+64, how)
		}
		_ = load(k, 1, ^uint32(0), 1<<32+i%32*128, how)
		m.Tick()
	}
}
