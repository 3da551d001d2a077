package bench

import (
	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// epsilon of the norms that are measured.
const epsilon = 1e-6

// norms checks the flags of calls with a Norm.
func (c *Config) norms() error {
	if c.Row == 0 {
		return nil
	}
	for _, coll := range c.Collectives {
		if coll.Kind != ringo.KindAllReduce && coll.Kind != ringo.KindReduceScatter {
			return cli.Usagef("-row: a norm follows allreduce and reducescatter, not %s", coll.Name)
		}
	}
	for _, t := range c.Types {
		n := kernels.Norm{Type: t, Row: int(c.Row) / t.Size(), Epsilon: epsilon}
		if err := n.Check(); err != nil || c.Row%int64(t.Size()) != 0 {
			return cli.Usagef("-row %s: %v: want rows of float16, bfloat16 (-d) or float32, of whole words of 8 bytes, "+
				"%d bytes at most", FormatSize(c.Row), t, kernels.MaxNormRow)
		}
	}
	switch {
	case len(c.Ops) != 1 || c.Ops[0].Kind != kernels.KindSum:
		return cli.Usagef("-row: a norm follows a sum: leave -o out")
	case c.Group > 1 || c.Error:
		return cli.Usagef("-row: leave -m and -error out")
	case len(c.Peers) > 0 && c.Device == "host":
		return cli.Usagef("-row: peers on host memory have no norms; nccl is measured without one")
	}
	return nil
}

// whole is count, cut to whole rows of elements of size bytes; at least one row.
func (c *Config) whole(count, size int) int {
	if c.Row == 0 {
		return count
	}
	row := int(c.Row) / size
	return max(row, count/row*row)
}

// normNote is the note about the norm that follows the collectives.
func normNote(cfg *Config) string {
	note := "residual, RMSNorm and weight follow, of rows of " + FormatSize(cfg.Row) + ", in the same call"
	if len(cfg.Peers) > 0 {
		note += "; with nccl nothing does"
	}
	return note
}

// normBuffers are a worker's memory for calls with a Norm: a weight, a residual and the normed rows, one behind the
// other.
type normBuffers struct {
	host []byte
	row  int         // bytes
	dev  *gpu.Device // nil for host memory
	twin mem.Region
}

// newNormBuffers makes memory for results of up to most bytes.
func newNormBuffers(row, most int, dev *gpu.Device) (b *normBuffers, err error) {
	b = &normBuffers{host: make([]byte, row+2*most), row: row, dev: dev}
	if dev != nil {
		b.twin, err = dev.Alloc(len(b.host))
	}
	return b, err
}

func (b *normBuffers) close() error {
	if b.dev == nil {
		return nil
	}
	return b.dev.Free(b.twin)
}

// parts are the parts of the memory for a call whose result has n bytes.
func (b *normBuffers) parts(n int) (weight, residual, normed []byte) {
	return b.host[:b.row], b.host[b.row:][:n], b.host[b.row+n:][:n]
}

// norm is the Norm that follows a call of count elements.
func (b *normBuffers) norm(t ringo.DataType, count int) *ringo.Norm {
	at := mem.Host(b.host)
	if b.dev != nil {
		at = b.twin
	}
	n := count * t.Size()
	return &ringo.Norm{Row: b.row / t.Size(), Epsilon: epsilon, Weight: at.Slice(0, b.row), Residual: at.Slice(b.row, n),
		Normed: at.Slice(b.row+n, n)}
}

// upload and download copy the memory of a call whose result has n bytes to and from the GPU, if there is one.
func (b *normBuffers) upload(n int) error {
	if b.dev == nil {
		return nil
	}
	return b.dev.Write(b.twin, b.host[:b.row+2*n])
}

func (b *normBuffers) download(n int) error {
	if b.dev == nil {
		return nil
	}
	return b.dev.Read(b.host[:b.row+2*n], b.twin)
}

// zero clears the memory of a call whose result has n bytes.
func (b *normBuffers) zero(n int) error {
	clear(b.host[:b.row+2*n])
	return b.upload(n)
}

// prepare writes weight and residual, which are the first elements of rank 0's contribution, and NaNs in place of the
// normed rows.
func (w *worker) prepare(d *data, n int) error {
	weight, residual, normed := w.norm.parts(n)
	given := w.scratch.of(d, 0)
	given.fill(weight, 0)
	given.fill(residual, 0)
	for i := range normed {
		normed[i] = 0xff // a NaN in every type
	}
	return w.norm.upload(n)
}

// normRows is how many rows are compared at a time.
const normRows = 64

// wrongRows counts the elements of a call's sums and normed rows that differ from the results of kernels.Norm for all
// ranks' contributions, from element from on.
func (w *worker) wrongRows(d *data, t ringo.DataType, sums []byte, from int) (wrong int64, err error) {
	if err := w.norm.download(len(sums)); err != nil {
		return 0, err
	}
	weight, residual, normed := w.norm.parts(len(sums))
	arithmetic := kernels.Norm{Type: t, Row: w.norm.row / t.Size(), Epsilon: epsilon}
	most := min(len(sums), normRows*w.norm.row)
	want := kernels.NormRows{Weight: weight}
	sum, rows := make([]byte, most), make([]byte, most)
	ins := make([][]byte, w.comm.Size())
	for r := range ins {
		ins[r] = make([]byte, most)
	}
	for at := 0; at < len(sums); at += most {
		n := min(most, len(sums)-at)
		want.In = want.In[:0]
		for r := range ins {
			w.scratch.of(d, r).fill(ins[r][:n], from+at/t.Size())
			want.In = append(want.In, ins[r][:n])
		}
		want.Residual, want.Sum, want.Normed = residual[at:][:n], sum[:n], rows[:n]
		arithmetic.Apply(&want)
		for _, pair := range [][2][]byte{{sums[at:][:n], want.Sum}, {normed[at:][:n], want.Normed}} {
			wrong += pattern{pair[1], t.Size()}.differ(pair[0])
		}
	}
	return wrong, nil
}
