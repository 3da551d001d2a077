package dlpack

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/mem"
)

// Options are the properties of a lent tensor beyond its memory and type.
type Options struct {
	Shape    []int  // elements in each dimension; nil for one dimension of all
	ReadOnly bool   // the borrower must not write; an error of LendLegacy, whose struct has no flag for it
	Returned func() // called once, on any thread, when the borrower gives the tensor back; may be nil
}

// Lend makes a managed tensor of memory and returns the address of its DLManagedTensorVersioned. The tensor lives until
// the borrower calls its deleter; until then memory of Go's heap is kept alive and in place, and the caller must not
// free memory of a GPU. A loan cannot be called back. The error is an *Error.
func Lend(r mem.Region, t Type, o Options) (at uintptr, err error) {
	return lend(r, t, o, func(l *lent) uintptr { return l.asVersioned(o.ReadOnly, deleter()) })
}

// LendLegacy is Lend that makes a DLManagedTensor.
func LendLegacy(r mem.Region, t Type, o Options) (at uintptr, err error) {
	if o.ReadOnly {
		return 0, wrong("flags", "a DLManagedTensor cannot say that it is read only: use Lend, or a copy")
	}
	return lend(r, t, o, func(l *lent) uintptr { return l.asLegacy(deleter()) })
}

// A lent is one loan: the memory, the struct that the borrower reads, and the pins that keep both in place.
type lent struct {
	region   mem.Region // keeps it alive
	dtype    Type
	numbers  []int64 // shape and strides
	returned func()
	pins     runtime.Pinner
	legacy   *legacy
	current  *versioned
}

// out are the tensors that are lent, by address.
var out struct {
	sync.Mutex
	m map[uintptr]*lent
}

// Lent is the number of tensors that are lent and not yet given back.
func Lent() int {
	out.Lock()
	defer out.Unlock()
	return len(out.m)
}

func lend(r mem.Region, t Type, o Options, make func(*lent) uintptr) (uintptr, error) {
	if err := supported(); err != nil {
		return 0, err
	}
	size := t.size()
	if size == 0 {
		return 0, wrong("dtype", "code %d of %d bits and %d lanes is not known", t.Code, t.Bits, t.Lanes)
	}
	if o.Shape == nil {
		if r.Len()%size != 0 {
			return 0, wrong("shape", "%d bytes are no whole elements of %d", r.Len(), size)
		}
		o.Shape = []int{r.Len() / size}
	}
	if err := covers(o.Shape, size, r.Len()); err != nil {
		return 0, err
	}
	l := &lent{region: r, dtype: t, returned: o.Returned, numbers: numbersOf(o.Shape)}
	at := make(l)
	out.Lock()
	defer out.Unlock()
	if out.m == nil {
		out.m = map[uintptr]*lent{}
	}
	out.m[at] = l
	return at, nil
}

// covers refuses a shape whose elements, of size bytes each, do not fill exactly that many bytes.
func covers(shape []int, size, bytes int) error {
	if len(shape) > maxDims {
		return wrong("ndim", "%d is not in 0…%d", len(shape), maxDims)
	}
	n := size
	for _, k := range shape {
		if k < 0 || k > 0 && n > math.MaxInt/k {
			return wrong("shape", "%v", shape)
		}
		n *= k
	}
	if n != bytes {
		return wrong("shape", "%v of elements of %d bytes are %d bytes, and the memory has %d", shape, size, n, bytes)
	}
	return nil
}

// numbersOf are the dimensions of a dense array, and its strides behind them.
func numbersOf(shape []int) []int64 {
	var list []int64
	for _, n := range shape {
		list = append(list, int64(n))
	}
	strides := make([]int64, len(shape))
	next := int64(1)
	for i := range slices.Backward(shape) {
		strides[i] = next
		next *= max(1, int64(shape[i]))
	}
	return append(list, strides...)
}

// deleter is the function of C that borrowers call.
var deleter = sync.OnceValue(func() uintptr { return dl.Callback(takeBack) })

// takeBack ends the loan of a tensor. A second call for the same tensor does nothing.
func takeBack(at uintptr) {
	out.Lock()
	l := out.m[at]
	delete(out.m, at)
	out.Unlock()
	if l == nil {
		return
	}
	l.pins.Unpin()
	if l.returned != nil {
		l.returned()
	}
}
