// Package payload fills messages of tests.
package payload

// pattern is what Fill writes, from some byte on.
var pattern = func() []byte {
	b := make([]byte, 1<<17)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}()

// Fill writes the payload that belongs to a seed. It copies, for the race detector looks at each store.
func Fill(b []byte, seed uint64) {
	from := pattern[seed*13%(1<<16):]
	for len(b) > 0 {
		b = b[copy(b, from):]
	}
}
