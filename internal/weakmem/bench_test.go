package weakmem

import (
	"fmt"
	"testing"

	"github.com/ringo-go/ringo/internal/alu"
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
					_ = m.Map(Span{Addr: (i + 1) << 32, Data: make([]byte, n), Written: make([]uint64, n/64), Name: "m"})
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
