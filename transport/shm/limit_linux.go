package shm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// room is the reason why this process cannot have size bytes more of memory, nil if it can.
func (t *Transport) room(size int) error {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil && uint64(size) > uint64(s.Totalram)*uint64(s.Unit) {
		return fmt.Errorf("shared memory: %s needed, the host has not so much: %s: %w", bytes(size), remedy, unix.ENOMEM)
	}
	for _, g := range t.groups() {
		if left, short := g.Left(uint64(size)); short {
			return fmt.Errorf("shared memory: %s needed, the container has %s left of %s (control group's %s): allow it more "+
				"memory, %s: %w",
				bytes(size), bytes(left), bytes(g.Limit), g.Name(), remedy, unix.ENOMEM)
		}
	}
	return nil
}

const remedy = "use smaller slots, or sockets"
