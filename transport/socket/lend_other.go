//go:build !linux || ringo_portable

package socket

// lendMin is out of reach: only Linux lends pages to sockets.
const lendMin = maxSlotBytes + 1

type loan struct{}

func (*loan) close() {}
