package simt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds are enough to meet every policy of the scheduler more than once.
const seeds = 12

func TestControlFlow(t *testing.T) {
	const n = 90 // threads: the last warp is not full
	in := func(i uint32) uint32 { return i*37 + 5 }
	for _, c := range []struct {
		kernel string
		args   []any // after the pointer
		want   func(i, in uint32) uint32
	}{
		{"nested", nil, func(i, in uint32) uint32 {
			r := uint32(0)
			switch {
			case i&1 == 1 && i&2 != 0 && i%3 == 0:
				r = in * 7
			case i&1 == 1 && i&2 != 0:
				r = 1
			case i&1 == 1:
				for k := uint32(0); k < i; k++ {
					r += k*k ^ i
				}
			case i%5 == 0:
				r = 1000 + i
			}
			return r + i
		}},
		{"collatz", nil, func(i, _ uint32) uint32 {
			n, steps, odd := i+1, uint32(0), uint32(0)
			for n != 1 {
				if steps++; steps > 100 {
					break
				}
				if n%2 == 0 {
					n /= 2
					continue
				}
				n = 3*n + 1
				odd++
			}
			return steps*1000 + odd
		}},
		{"switches", nil, func(i, in uint32) uint32 {
			r := uint32(99)
			switch in % 11 {
			case 0:
				r = i * 3
			case 1:
				r = i ^ 77
			case 2:
				r = i << 2
			case 3:
				r = i << 2
			case 4:
				return 4
			case 5:
				r = i % 7
			case 6:
				r = 1
				for k := uint32(0); k < i; k++ {
					r = r*5 + 1
				}
			case 8:
				r = i / 3
			}
			return r + 1
		}},
		{"early", []any{70}, func(i, in uint32) uint32 {
			if i >= 70 {
				return in
			}
			s := uint32(0)
			for k := uint32(0); k < 100; k++ {
				if s += in + k; s > 500+i {
					return in
				}
			}
			return s
		}},
		{"calls", nil, func(i, _ uint32) uint32 {
			if i&1 == 1 {
				a := i * 3
				b := uint64(i) << 33
				if i&4 != 0 {
					b = uint64(a + 10)
				}
				return a + uint32(b>>3)
			}
			r := uint32(0)
			for k := uint32(0); k < i%4; k++ {
				r += r + k
			}
			return r
		}},
		{"local", []any{50}, func(i, _ uint32) uint32 {
			var a [13]uint32
			for k := range a {
				a[k] = uint32(k) * i
			}
			k := i
			for range 50 {
				k = (k*5 + 1) % 13
				a[k] += a[(k+3)%13]
			}
			return a[k]
		}},
	} {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(c.kernel, "/", seed), func(t *testing.T) {
				var data, want []uint32
				for i := range uint32(n) {
					data = append(data, in(i))
					want = append(want, c.want(i, in(i)))
				}
				require.Equal(t, want, compute(t, options{seed: seed}, "flow.ptx", c.kernel, n, data, c.args...))
			})
		}
	}
}
