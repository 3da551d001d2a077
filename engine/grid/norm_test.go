package grid

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A normTrial is an operation of RunNorm on all ranks.
type normTrial struct {
	kernels.Norm
	d                      Direct
	rows                   int // of a rank's In
	residual, bias, weight bool
	sum, normed            bool
	scale                  float32 // 0: each row's own
	inPlace                bool    // Sum is Residual, Normed is In
	blocks                 int
	odd                    bool // some elements are infinite, not numbers, large or tiny
	cuts                   []cut
}

// A cut is a part of a batch that an operation of its own carries out.
type cut struct {
	rows, blocks int
	d            Direct
}

func (x normTrial) String() string {
	return fmt.Sprintf("%v of %d rows of %d %v: residual %v bias %v weight %v + 1 %v, sum %v normed %v small %v scale "+
		"%v, in place %v, blocks %d, odd %v, cuts %v",
		x.d, x.rows, x.Row, x.Type, x.residual, x.bias, x.weight, x.PlusOne, x.sum, x.normed, x.Small, x.scale, x.inPlace,
		x.blocks, x.odd, x.cuts)
}

// A normData is what all ranks have and should get, by rank.
type normData struct {
	in, residual [][]byte
	bias, weight []byte
	want         []kernels.NormRows // Sum, Normed, Small and Scales of the rows that a rank gets
}

// activations are random numbers as they are in models, from which elements takes some: a test takes many.
var activations = sync.OnceValue(func() []float32 {
	rnd := rand.New(rand.NewPCG(3, 4))
	v := make([]float32, 1<<16)
	for i := range v {
		v[i] = float32(rnd.NormFloat64()) * float32(math.Exp2(float64(rnd.IntN(6)-3)))
	}
	return v
})

// elements are random ones of a type.
func elements(rnd *rand.Rand, t kernels.DataType, n int, odd bool) []byte {
	b, some := make([]byte, 0, n*t.Size()), activations()
	at, step := rnd.IntN(len(some)), 1+2*rnd.IntN(len(some)/2)
	for i := range n {
		v := some[(at+i*step)%len(some)]
		if odd && rnd.IntN(97) == 0 {
			v = []float32{float32(math.Inf(1)), float32(math.NaN()), 3e38, -3e38, 1e-40, 0, float32(math.Copysign(0, -1)),
				65504}[rnd.IntN(8)]
		}
		switch t {
		case kernels.Float16:
			b = binary.LittleEndian.AppendUint16(b, uint16(kernels.NewF16(v)))
		case kernels.BFloat16:
			b = binary.LittleEndian.AppendUint16(b, uint16(kernels.NewBF16(v)))
		default:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

func (x *normTrial) data(ranks int, seed uint64) *normData {
	rnd := rand.New(rand.NewPCG(seed, 11))
	n, row := x.rows*x.Row, x.Row*x.Type.Size()
	o := &normData{bias: elements(rnd, x.Type, x.Row, x.odd), weight: elements(rnd, x.Type, x.Row, false)}
	all := elements(rnd, x.Type, n, x.odd)
	share := x.rows
	if x.d == ReduceScatter {
		share /= ranks
	}
	for range ranks {
		o.in = append(o.in, elements(rnd, x.Type, n, x.odd))
	}
	for i := range ranks {
		first := 0
		if x.d == ReduceScatter {
			first = i * share
		} else if i > 0 { // the same on all ranks
			o.residual, o.want = append(o.residual, o.residual[0]), append(o.want, o.want[0])
			continue
		}
		of := func(b []byte) []byte { return b[first*row:][:share*row] }
		want := kernels.NormRows{Scale: x.scale}
		for _, in := range o.in {
			want.In = append(want.In, of(in))
		}
		o.residual = append(o.residual, of(all))
		if x.residual {
			want.Residual = of(all)
		}
		if x.bias {
			want.Bias = o.bias
		}
		if x.weight {
			want.Weight = o.weight
		}
		if x.sum {
			want.Sum = make([]byte, share*row)
		}
		if x.normed {
			want.Normed = make([]byte, share*row)
		}
		if x.Small != 0 {
			want.Small, want.Scales = make([]byte, share*x.Row), make([]byte, 4*share)
		}
		x.Norm.Apply(&want)
		o.want = append(o.want, want)
	}
	return o
}

// A normRun is a trial with its memory on all ranks.
type normRun struct {
	work
	x     normTrial
	norms []Norm
}

// prepareNorm puts a trial's data into the GPUs' memory.
func (r *rig) prepareNorm(x normTrial, seed uint64) *normRun {
	r.t.Helper()
	n := len(r.ranks)
	o := x.data(n, seed)
	red, err := kernels.NewReducer(x.Type, kernels.Sum, n)
	require.NoError(r.t, err)
	jobs, norms := make([]Job, n), make([]Norm, n)
	for i, m := range r.ranks {
		upload := func(b []byte, wanted bool) mem.Region { return r.uploadIf(m, b, 8, wanted) }
		w := &o.want[i]
		scale := binary.LittleEndian.AppendUint32(nil, math.Float32bits(x.scale))
		jobs[i] = Job{In: upload(o.in[i], true), Reducer: red, Stamp: transport.Stamp{7, 9}, Stream: m.stream,
			Blocks: x.blocks}
		norms[i] = Norm{
			Norm: x.Norm, Sum: x.sum, Residual: upload(o.residual[i], x.residual), Bias: upload(o.bias, x.bias),
			Weight:   upload(o.weight, x.weight),
			SmallOut: upload(bytes.Repeat([]byte{0x5a}, len(w.Small)), x.Small != 0),
			Scale:    upload(scale, x.Small != 0 && x.scale != 0),
			Scales:   upload(bytes.Repeat([]byte{0x5a}, len(w.Scales)), x.Small != 0 && x.scale == 0),
		}
		jobs[i].Out, norms[i].Normed = upload(make([]byte, len(w.Sum)), x.sum), upload(make([]byte, len(w.Normed)), x.normed)
		if x.inPlace && x.residual && x.sum {
			jobs[i].Out = norms[i].Residual
		}
		if x.inPlace && x.normed {
			norms[i].Normed = jobs[i].In.Slice(0, len(w.Normed))
			if x.d == ReduceScatter {
				norms[i].Normed = jobs[i].In.Slice(i*len(w.Normed), len(w.Normed))
			}
		}
	}
	run := &normRun{work{name: x.String(), jobs: jobs}, x, norms}
	for i, m := range r.ranks {
		w := &o.want[i]
		run.expect(m, jobs[i].Out, w.Sum)
		run.expect(m, norms[i].Normed, w.Normed)
		run.expect(m, norms[i].SmallOut, w.Small)
		run.expect(m, norms[i].Scales, w.Scales)
	}
	run.queue = run.queueCuts
	return run
}

// uploadIf is upload of what is wanted, nothing otherwise.
func (r *rig) uploadIf(m *member, b []byte, skip int, wanted bool) mem.Region {
	if !wanted || len(b) == 0 {
		return mem.Device(int(m.dev), 0, 0)
	}
	return r.upload(m, b, skip)
}

// expect says what an output should be, if it is there.
func (run *normRun) expect(m *member, out mem.Region, want []byte) {
	if out.Len() > 0 {
		run.images = append(run.images, image{m: m, at: out.Ptr(), want: want})
	}
}

func (run *normRun) queueCuts(m *member) error {
	x := &run.x
	cuts := x.cuts
	if cuts == nil {
		cuts = []cut{{x.rows, x.blocks, x.d}}
	}
	first := 0
	for _, c := range cuts {
		j, n := run.jobs[m.rank], run.norms[m.rank]
		if x.cuts != nil {
			row := x.Row * x.Type.Size()
			for part, size := range map[*mem.Region]int{&j.In: row, &j.Out: row, &n.Residual: row, &n.Normed: row,
				&n.SmallOut: x.Row, &n.Scales: 4} {
				if part.Len() > 0 {
					*part = part.Slice(first*size, c.rows*size)
				}
			}
		}
		j.Blocks = c.blocks
		if err := m.engine.RunNorm(&j, &n, c.d); err != nil {
			return err
		}
		first += c.rows
	}
	return nil
}

func (r *rig) tryNorm(x normTrial, seed uint64) {
	r.t.Helper()
	r.once(r.prepareNorm(x, seed))
}

// boardForRows is a board in whose mailboxes many rows take several rounds.
func rowOptions(ranks int) Options { return Options{Ranks: ranks, Threads: 128} }

func boardForRows(ranks int) Board { return boardFor(ranks, 2400) }

func boardFor(ranks, row int) Board {
	b := small(ranks)
	b.MailBytes = 2 * 2 * (ranks - 1) * 3 * roundUp(lines(row)+2*lineLanes, lineLanes) * lineBytes
	return b
}

// TestNorm compares all that a norm kernel makes with kernels.Norm, bit for bit.
func TestNorm(t *testing.T) {
	for _, n := range tier.Some(2, []int{2, 3, 4, 8}) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(n), Link: link(uint64(n))}), boardFor(n, 5600),
				rowOptions(n))
			for seed := range uint64(tier.Count(6, 40)) {
				r.tryNorm(randomNorm(rand.New(rand.NewPCG(seed, uint64(n))), n), seed)
			}
		})
	}
}

// TestRows: a kernel for contributions in the GPU's own memory has the same bits.
func TestRows(t *testing.T) {
	r := newRig(t, emulated(t, 1, cudaemu.Config{Seed: 3}), small(1), rowOptions(1))
	m := r.ranks[0]
	for seed := range uint64(tier.Count(8, 40)) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		x := randomNorm(rnd, 1)
		x.d, x.inPlace = OneShot, false
		n := 1 + rnd.IntN(12)
		o := x.data(n, seed)
		red, err := kernels.NewReducer(x.Type, kernels.Sum, n)
		require.NoError(t, err)
		upload := func(b []byte, wanted bool) mem.Region { return r.uploadIf(m, b, 0, wanted) }
		w := &o.want[0]
		j := Job{In: upload(bytes.Join(o.in, nil), true), Reducer: red, Stream: m.stream, Blocks: x.blocks,
			Out: upload(make([]byte, len(w.Sum)), true)}
		norm := Norm{
			Norm: x.Norm, Sum: x.sum, Residual: upload(o.residual[0], x.residual), Bias: upload(o.bias, x.bias),
			Weight: upload(o.weight, x.weight),
			Normed: upload(make([]byte, len(w.Normed)), true), SmallOut: upload(make([]byte, len(w.Small)), true),
			Scales: upload(make([]byte, len(w.Scales)), x.Small != 0 && x.scale == 0),
			Scale:  upload(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x.scale)), x.Small != 0 && x.scale != 0),
		}
		run := &normRun{x: x, work: work{name: fmt.Sprint(x, " of ", n),
			queue: func(m *member) error { return m.engine.RunRows(&j, &norm, n) }}}
		run.expect(m, j.Out, w.Sum)
		run.expect(m, norm.Normed, w.Normed)
		run.expect(m, norm.SmallOut, w.Small)
		run.expect(m, norm.Scales, w.Scales)
		r.once(run)
	}
}

// TestNormCuts: a row's result does not depend on the batch that it is in, nor on how that is cut, by which hops it
// goes and in how many blocks.
func TestNormCuts(t *testing.T) {
	n, board, o := 2, boardFor(2, 5600), rowOptions(2)
	if gputest.OnGPU() {
		board, o.Threads = DefaultBoard(2), 0
	}
	r := newRig(t, emulated(t, n, cudaemu.Config{Seed: 5}), board, o)
	for seed := range uint64(max(*normBatches, tier.Count(4, 30))) {
		rnd := rand.New(rand.NewPCG(seed, 77))
		x := randomNorm(rnd, n)
		x.rows = 1 + rnd.IntN(12)
		if gputest.OnGPU() { // sizes of models
			x.rows = 1 << rnd.IntN(9) * (3 + rnd.IntN(2)) / 4
			x.Row = 512 * (2 + rnd.IntN(31))
		}
		for left := x.rows; left > 0; {
			c := cut{1 + rnd.IntN(left), rnd.IntN(1 + MaxBlocks), []Direct{OneShot, TwoShot}[rnd.IntN(2)]}
			x.cuts = append(x.cuts, c)
			left -= c.rows
		}
		x.d = OneShot
		r.tryNorm(x, seed)
	}
}

var normBatches = flag.Int("batches", 0, "least random batches of TestNormCuts")

func randomNorm(rnd *rand.Rand, ranks int) normTrial {
	coin := func() bool { return rnd.IntN(2) == 0 }
	x := normTrial{
		d: []Direct{OneShot, TwoShot, ReduceScatter}[rnd.IntN(3)], rows: rnd.IntN(9), blocks: rnd.IntN(4),
		residual: coin(), bias: coin(), weight: coin(), sum: coin(), normed: coin(), inPlace: coin(), odd: coin(),
	}
	x.Type = []kernels.DataType{kernels.BFloat16, kernels.Float16, kernels.Float32}[rnd.IntN(3)]
	x.Row = 8 / x.Type.Size() * (1 + rnd.IntN([]int{125, 125, 700}[rnd.IntN(3)])) // some rows are of several parts
	x.Epsilon, x.PlusOne = []float32{0, 1e-6, 1e-5}[rnd.IntN(3)], coin()
	if coin() {
		x.Small = []kernels.DataType{kernels.Float8E4M3, kernels.Int8}[rnd.IntN(2)]
		if coin() {
			x.scale = float32(math.Exp2(float64(rnd.IntN(10))-8)) * 1.1
		}
	}
	if x.d == ReduceScatter {
		x.rows = x.rows / 2 * ranks
	}
	return x
}
