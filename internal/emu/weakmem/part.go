package weakmem

import "fmt"

// A Part is a variable of a block's shared memory. Between parts nothing may be accessed.
type Part struct {
	Name     string
	From, To uint64
}

// limit is the offset where the accessible bytes end that the one at an address belongs to, 0 if it is not accessible.
func (s *Allocation) limit(addr uint64) uint64 {
	if s.parts == nil {
		return uint64(len(s.Data))
	}
	for i := range s.parts {
		if p := &s.parts[i]; addr-p.From < p.To-p.From {
			return p.To
		}
	}
	return 0
}

// nearPart says where in shared memory an address lies that is not accessible.
func (s *Allocation) nearPart(addr uint64) string {
	all := uint64(len(s.Data))
	if s.parts != nil {
		all = 0
	}
	near := ""
	for _, p := range s.parts {
		all += p.To - p.From
		if addr >= p.To {
			near = fmt.Sprintf(", and this is %d bytes behind the end of %s", addr-p.To, p.Name)
		}
	}
	return fmt.Sprintf("the block has %d bytes of shared memory%s", all, near)
}
