//go:build !linux

package socket

import "golang.org/x/sys/unix"

// lendMin is out of reach: only Linux lends pages to sockets.
const lendMin = maxSlotBytes + 1

type loan struct{}

func (*loan) write(int, *chunk) (int, error) { return 0, unix.ENOTSUP }
func (*loan) close()                         {}
