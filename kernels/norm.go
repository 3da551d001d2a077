package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A Norm is the step after an all-reduce in serving: a bias and a residual are added to the sum of the ranks' rows
// (tokens), and each row is divided by its root mean square. Apply is the definition, and the GPU's kernel gives the
// same bits. A row's result depends on that row alone.
//
// Contributions are added in float32 in order of rank, then bias, then residual, and rounded once to Type: that is the
// row of Sum. The squares of its elements are added in float32: within each 16 bytes in order; the 8 parts of a line of
// 120 bytes in a tree; line i to sum i modulo 32, in order; then the 32 sums in a tree. The row's factor is
// 1/√(squares/Row + Epsilon), each operation rounded to nearest. An element of Normed is the row's element times the
// factor times the weight, rounded once. Small has, in 8 bits, Normed's elements times the reciprocal of a scale,
// rounded to nearest even: E4M3 saturates at 448, integers at 127.
type Norm struct {
	Type    DataType // Float16, BFloat16 or Float32
	Row     int      // elements of a row: whole words of 8 bytes, 64 KiB at most
	Epsilon float32
	PlusOne bool     // the factor of an element is 1 + weight
	Small   DataType // Float8E4M3 or Int8; 0 if there is none
}

// MaxNormRow is the longest row of a Norm, in bytes.
const MaxNormRow = 64 << 10

// NormRows is the memory that a Norm reads and writes, of any number of rows. A nil input counts as absent, a nil
// output as not wanted. Sum and Normed may be Residual or one of In, since each row is read before it is written.
type NormRows struct {
	In           [][]byte // contributions, in order of rank
	Residual     []byte
	Bias, Weight []byte // one row each

	Sum, Normed []byte
	Small       []byte  // an element is a byte
	Scale       float32 // of all rows of Small; 0: each row's greatest magnitude divided by 448 (E4M3) or 127 (Int8)
	Scales      []byte  // where the rows' own scales go, a float32 each, little-endian
}

// Check returns an error if a field has a value that Apply and the kernels do not take.
func (n *Norm) Check() error {
	switch size := n.Type.Size(); {
	case n.Type != Float16 && n.Type != BFloat16 && n.Type != Float32:
		return fmt.Errorf("rows of %v: want float16, bfloat16 or float32", n.Type)
	case n.Row < 1 || n.Row*size%8 != 0 || n.Row > MaxNormRow/size:
		return fmt.Errorf("rows of %d elements of %d bytes: want whole words of 8 bytes, %d bytes at most", n.Row,
			size, MaxNormRow)
	case !(n.Epsilon >= 0) || math.IsInf(float64(n.Epsilon), 0):
		return fmt.Errorf("epsilon %v: want 0 or more", n.Epsilon)
	case n.Small != 0 && n.Small != Float8E4M3 && n.Small != Int8:
		return fmt.Errorf("rows in %v: want float8e4m3 or int8", n.Small)
	}
	return nil
}

const (
	normPart = 16      // bytes of a line that one thread has
	normLine = 120     // bytes of data in a line of direct kernels
	leastOwn = 0x1p-40 // the least scale of a row's own: a row of zeros has one too
)

// Apply computes the outputs of as many rows as In[0] has. It checks nothing, see Check.
func (n *Norm) Apply(r *NormRows) {
	size := n.Type.Size()
	row := n.Row * size
	x, y, weight := make([]float32, n.Row), make([]float32, n.Row), make([]float32, n.Row)
	if r.Weight != nil {
		n.load(weight, r.Weight)
	}
	for i := 0; (i+1)*row <= len(r.In[0]); i++ {
		at := i * row
		for k, in := range r.In {
			if k == 0 {
				n.load(x, in[at:])
			} else {
				n.load(y, in[at:])
				accumulate(x, y, false)
			}
		}
		if r.Bias != nil {
			n.load(y, r.Bias)
			accumulate(x, y, false)
		}
		if r.Residual != nil {
			n.load(y, r.Residual[at:])
			accumulate(x, y, false)
		}
		n.round(x)
		if r.Sum != nil {
			n.store(r.Sum[at:], x)
		}
		if r.Normed == nil && r.Small == nil {
			continue
		}
		n.scale(x, weight, r.Weight != nil)
		if r.Normed != nil {
			n.store(r.Normed[at:], x)
		}
		if r.Small != nil {
			scale := r.Scale
			if scale == 0 {
				scale = n.own(x)
				binary.LittleEndian.PutUint32(r.Scales[4*i:], math.Float32bits(scale))
			}
			n.small(r.Small[i*n.Row:], x, 1/scale)
		}
	}
}

// scale turns a row of Sum into that of Normed. Without has there is no weight.
func (n *Norm) scale(x, weight []float32, has bool) {
	mean := n.squares(x)/float32(n.Row) + n.Epsilon
	factor := 1 / float32(math.Sqrt(float64(mean)))
	for i := range x {
		x[i] *= factor
		if has {
			w := weight[i]
			if n.PlusOne {
				w += 1
			}
			x[i] *= w
		}
	}
	n.round(x)
}

// squares is the sum of squares of a row.
func (n *Norm) squares(x []float32) float32 {
	part, line := normPart/n.Type.Size(), normLine/n.Type.Size()
	var lanes [32]float32
	for i := 0; len(x) > 0; i++ {
		l := x[:min(line, len(x))]
		x = x[len(l):]
		var parts [8]float32
		for k := 0; len(l) > 0; k++ {
			p := l[:min(part, len(l))]
			l = l[len(p):]
			for _, v := range p {
				parts[k] += float32(v * v) // not fused
			}
		}
		lanes[i%len(lanes)] += halved(parts[:])
	}
	return halved(lanes[:])
}

// halved is the sum of all x: the upper half is added to the lower one until one is left.
func halved(x []float32) float32 {
	for n := len(x) / 2; n > 0; n /= 2 {
		for i := range n {
			x[i] += x[i+n]
		}
	}
	return x[0]
}

// own is a row's own scale, for NormRows.Scale 0.
func (n *Norm) own(x []float32) float32 {
	var most float32
	for _, v := range x {
		most = max(most, magnitude(v))
	}
	return max(most/n.largest(), leastOwn)
}

// magnitude is |v|, 0 of a NaN.
func magnitude(v float32) float32 {
	if v != v {
		return 0
	}
	return math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
}

// largest is the largest number of Small.
func (n *Norm) largest() float32 {
	if n.Small == Int8 {
		return 127
	}
	return 448
}

// small stores a row times a factor in 8 bits.
func (n *Norm) small(dst []byte, x []float32, factor float32) {
	for i, v := range x {
		v *= factor
		switch {
		case n.Small == Float8E4M3:
			dst[i] = byte(NewF8E4M3(v))
		case v != v:
			dst[i] = 0
		default:
			dst[i] = byte(int8(math.RoundToEven(float64(min(max(v, -127), 127)))))
		}
	}
}

// round rounds each element to Type.
func (n *Norm) round(x []float32) {
	for i, v := range x {
		switch n.Type {
		case Float16:
			x[i] = NewF16(v).Float32()
		case BFloat16:
			x[i] = NewBF16(v).Float32()
		default:
			if v != v {
				x[i] = math.Float32frombits(nanF32)
			}
		}
	}
}

func (n *Norm) load(dst []float32, src []byte) {
	for i := range dst {
		switch n.Type {
		case Float16:
			dst[i] = F16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
		case BFloat16:
			dst[i] = BF16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
		default:
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	}
}

// store stores a row that has been rounded.
func (n *Norm) store(dst []byte, x []float32) {
	for i, v := range x {
		switch n.Type {
		case Float16:
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(NewF16(v)))
		case BFloat16:
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(NewBF16(v)))
		default:
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	}
}
