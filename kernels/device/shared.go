package device

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A combinerKey names the Combiner of a cuda.Store.
type combinerKey struct{}

// Borrow is New for users who share the Combiner of a context. Each user closes the Combiner
// once. Its kernels stay loaded as long as the context's cuda.Store has users.
func Borrow(d cuda.Driver, ctx cuda.Context) (*Combiner, error) {
	s := cuda.OpenStore(d, ctx)
	c, err := cuda.Stored(s, combinerKey{}, func() (*Combiner, error) {
		c, err := New(d, ctx)
		if err == nil {
			c.store = s
		}
		return c, err
	}, (*Combiner).unload)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}
