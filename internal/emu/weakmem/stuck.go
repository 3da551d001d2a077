package weakmem

import "fmt"

// A stuckBit is a bit of memory that keeps its value.
type stuckBit struct {
	allocation  *Allocation
	at          *byte
	mask, value byte
}

// Stick makes a bit of the byte at addr keep a value, whatever is written there, until the
// memory is unmapped: a bad cell. Bits count from 0, the lowest.
func (m *Memory) Stick(addr uint64, bit int, one bool) error {
	s := m.allocations.find(addr)
	if s == nil || bit < 0 || bit > 7 {
		return fmt.Errorf("weakmem: stick: no bit %d at %#x", bit, addr)
	}
	b := stuckBit{allocation: s, at: &s.Data[addr-s.Addr], mask: 1 << bit}
	if one {
		b.value = b.mask
	}
	m.stuck = append(m.stuck, b)
	m.hold()
	return nil
}

// hold puts the stuck bits back, after any change.
func (m *Memory) hold() {
	for _, b := range m.stuck {
		*b.at = *b.at&^b.mask | b.value
	}
}
