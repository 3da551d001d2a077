// Package object moves values of any type that encoding/gob can encode between the ranks of a communicator, on host
// memory. It is for small or rare values: a configuration, a vocabulary, a list of files. All ranks call a function
// together, with the same type. It is an example to copy, and nothing here is promised to other modules.
//
// Cost: two collectives, the first for lengths, function and root; three for a Scatter; and encoding and decoding, a
// few µs and allocations. An error of this package leaves the communicator usable. It wraps ringo.ErrInvalid if a root
// is no rank, if a value could not be encoded (an error on all ranks), or if one could not be decoded; it wraps
// ringo.ErrMismatch if ranks call different functions or roots (an error on all ranks too).
//
// The trap: gob leaves out fields that are not exported. And decoding trusts the sending rank as much as the program.
package object

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
)

// A function is the number of a function of this package, by which ranks see that they call the same one.
type function int64

const (
	allGather function = iota
	gather
	broadcast
	scatter
)

func (f function) String() string {
	return [...]string{"AllGather", "Gather", "Broadcast", "Scatter"}[f]
}

// AllGather gives every rank the values of all ranks, by rank.
func AllGather[T any](c *ringo.Comm, value T) ([]T, error) {
	parts, err := gatherBytes(c, allGather, encode(value), -1,
		func(out, in []byte, counts []int) error { return ringo.AllGatherv(c, out, in, counts) })
	if err != nil {
		return nil, err
	}
	return decodeAll[T](parts)
}

// Gather gives root the values of all ranks, by rank. The others get nil.
func Gather[T any](c *ringo.Comm, value T, root int) ([]T, error) {
	parts, err := gatherBytes(c, gather, encode(value), root,
		func(out, in []byte, counts []int) error { return ringo.Gatherv(c, out, in, counts, root) })
	if err != nil || c.Rank() != root {
		return nil, err
	}
	return decodeAll[T](parts)
}

// Broadcast gives every rank root's value. The value of another rank is ignored.
func Broadcast[T any](c *ringo.Comm, value T, root int) (T, error) {
	var zero T
	mine := encoded{}
	if c.Rank() == root {
		mine = encode(value)
	}
	n, err := agree(c, broadcast, mine, root)
	if err != nil {
		return zero, err
	}
	b := mine.b
	if c.Rank() != root {
		b = make([]byte, n[root])
	}
	if err := ringo.Broadcast(c, b, root); err != nil {
		return zero, err
	}
	return decode[T](root, b)
}

// Scatter gives each rank its value of root's values, which are one for each rank. The values of another rank are
// ignored.
func Scatter[T any](c *ringo.Comm, values []T, root int) (T, error) {
	var zero T
	n, all := make([]int64, c.Size()), encoded{}
	if c.Rank() == root {
		if len(values) != c.Size() {
			all.err = fmt.Errorf("%d values for %d ranks", len(values), c.Size())
		}
		for r := 0; r < len(values) && all.err == nil; r++ {
			e := encode(values[r])
			n[r], all.err = e.length(), e.err
			all.b = append(all.b, e.b...)
		}
	}
	if _, err := agree(c, scatter, all, root); err != nil {
		return zero, err
	}
	if err := ringo.Broadcast(c, n, root); err != nil {
		return zero, err
	}
	mine := make([]byte, n[c.Rank()])
	if err := ringo.Scatterv(c, mine, all.b, lengths(n), root); err != nil {
		return zero, err
	}
	return decode[T](root, mine)
}

// An encoded is an encoded value, or the error of encoding it.
type encoded struct {
	b   []byte
	err error
}

func encode[T any](value T) encoded {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&value)
	return encoded{b.Bytes(), err}
}

// length is the number of bytes that other ranks are told: -1 if the value could not be encoded.
func (e *encoded) length() int64 {
	if e.err != nil {
		return -1
	}
	return int64(len(e.b))
}

// agree returns the lengths of all ranks' encoded values, by rank. It is an error if the ranks do not all call the same
// function with the same root, which is -1 if the function has none.
func agree(c *ringo.Comm, f function, mine encoded, root int) ([]int64, error) {
	if root < -1 || root >= c.Size() || root < 0 && f != allGather { // an error of this rank alone
		return nil, fmt.Errorf("object: %w: root %d is not in 0…%d", ringo.ErrInvalid, root, c.Size()-1)
	}
	said := make([]int64, 3*c.Size())
	if err := ringo.AllGather(c, said, []int64{mine.length(), int64(f), int64(root)}); err != nil {
		return nil, err
	}
	n := make([]int64, c.Size())
	for r := range n {
		n[r] = said[3*r]
		if g, at := function(said[3*r+1]), int(said[3*r+2]); g != f || at != root {
			return nil, fmt.Errorf("object: %w: rank %d calls %s, rank %d calls %s", ringo.ErrMismatch, c.Rank(), named(f, root),
				r, named(g, at))
		}
	}
	for r, k := range n {
		if k < 0 {
			return nil, wrong(r, mine.err)
		}
	}
	return n, nil
}

func named(f function, root int) string {
	if root < 0 {
		return f.String()
	}
	return fmt.Sprintf("%v(root %d)", f, root)
}

// gatherBytes collects the encoded values of all ranks, by rank, on the ranks to which gather gives them.
func gatherBytes(c *ringo.Comm, f function, mine encoded, root int,
	gather func(out, in []byte, counts []int) error) ([][]byte, error) {
	n, err := agree(c, f, mine, root)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, k := range n {
		total += int(k)
	}
	if root >= 0 && root != c.Rank() {
		return nil, gather(nil, mine.b, lengths(n))
	}
	all := make([]byte, total)
	if err := gather(all, mine.b, lengths(n)); err != nil {
		return nil, err
	}
	parts := make([][]byte, len(n))
	for r, k := range n {
		parts[r], all = all[:k], all[k:]
	}
	return parts, nil
}

func lengths(n []int64) []int {
	counts := make([]int, len(n))
	for r, k := range n {
		counts[r] = int(k)
	}
	return counts
}

func decodeAll[T any](parts [][]byte) (values []T, err error) {
	values = make([]T, len(parts))
	for r, b := range parts {
		if values[r], err = decode[T](r, b); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func decode[T any](from int, b []byte) (value T, err error) {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&value); err != nil {
		return value, wrong(from, err)
	}
	return value, nil
}

// wrong is the error of a rank's value. Only that rank knows why the value could not be encoded; elsewhere why is nil.
func wrong(rank int, why error) error {
	if why == nil {
		why = errors.New("it could not be encoded there")
	}
	return fmt.Errorf("object: %w: the value of rank %d: %w", ringo.ErrInvalid, rank, why)
}
