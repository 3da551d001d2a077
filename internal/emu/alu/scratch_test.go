package alu

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

func scratchOp(name string) Op {
	words := strings.Split(name, ".")
	in := &ptx.Instr{Op: words[0], Mods: words[1:], Guard: -1}
	for _, w := range in.Mods {
		for t := ptx.B8; t <= ptx.Pred; t++ {
			if t.String() == w {
				in.Types = append(in.Types, t)
			}
		}
	}
	op, err := Lookup(in)
	if err != nil {
		panic(err)
	}
	return op
}

func TestScratch(t *testing.T) {
	f, _ := os.Open("/tmp/gi/samples.txt")
	s := bufio.NewScanner(f)
	same, n := map[string]int{}, map[string]int{}
	shown := map[string]int{}
	for s.Scan() {
		w := strings.Fields(s.Text())
		op := scratchOp(w[0])
		var l [4]Lanes
		var src []*Lanes
		for i := range op.Srcs {
			l[i][0], _ = strconv.ParseUint(w[1+i], 16, 64)
			src = append(src, &l[i])
		}
		want, _ := strconv.ParseUint(w[len(w)-1], 16, 64)
		op.Run(1, []*Lanes{&l[3]}, src)
		got := l[3][0]
		n[w[0]]++
		if got == want {
			same[w[0]]++
			continue
		}
		d := int64(got) - int64(want)
		if (d < -3 || d > 3) && shown[w[0]] < 12 {
			shown[w[0]]++
			fmt.Println(s.Text(), fmt.Sprintf("here %x; x %v hw %v", got, math.Float32frombits(uint32(l[0][0])), math.Float32frombits(uint32(want))))
		}
	}
	for _, h := range []string{"ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16"} {
		b, _ := os.ReadFile("/tmp/gi/" + h + ".raw")
		op := scratchOp(h)
		for i := 0; i < 65536; i++ {
			var x, y Lanes
			x[0] = uint64(i)
			op.Run(1, []*Lanes{&y}, []*Lanes{&x})
			want := uint64(b[2*i]) | uint64(b[2*i+1])<<8
			n[h]++
			if want == y[0] {
				same[h]++
			} else if d := int64(want) - int64(y[0]); (d > 1 || d < -1) && shown[h] < 10 {
				shown[h]++
				fmt.Printf("%s %x here %x hw %x\n", h, i, y[0], want)
			}
		}
	}
	for _, h := range []string{"rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"} {
		b, _ := os.ReadFile("/tmp/gi/" + h + ".raw")
		op := scratchOp(h)
		for i := 0; i < 2<<20; i++ {
			var x, y Lanes
			x[0] = uint64(0x3ff00000+i) << 32
			op.Run(1, []*Lanes{&y}, []*Lanes{&x})
			want := uint64(b[4*i]) | uint64(b[4*i+1])<<8 | uint64(b[4*i+2])<<16 | uint64(b[4*i+3])<<24
			n[h+"all"]++
			d := int64(want) - int64(y[0]>>32)
			n[fmt.Sprint(h, d)]++
			if d == 0 {
				same[h+"all"]++
			}
		}
	}
	b, _ := os.ReadFile("/tmp/gi/tanh.approx.f32.raw")
	op := scratchOp("tanh.approx.f32")
	worst := 0.0
	for i := 0; i < 2<<20; i++ {
		var x, y Lanes
		x[0] = uint64(0x39800000 + 64*i)
		op.Run(1, []*Lanes{&y}, []*Lanes{&x})
		want := uint64(b[4*i]) | uint64(b[4*i+1])<<8 | uint64(b[4*i+2])<<16 | uint64(b[4*i+3])<<24
		n["tanhall"]++
		if want == y[0] {
			same["tanhall"]++
		}
		worst = max(worst, math.Abs(float64(math.Float32frombits(uint32(want)))/float64(math.Float32frombits(uint32(y[0])))-1))
	}
	fmt.Println("tanh", math.Log2(worst))
	for k := range n {
		fmt.Println(k, same[k], n[k])
	}
}
