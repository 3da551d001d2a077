package p2p

import (
	"errors"
	"slices"
)

// Mapped is how many bytes of this rank's own memory Suspend gives back, or has given back.
func (r *Range) Mapped() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.pieces {
		if p := &r.pieces[i]; p.handle != 0 || len(p.again) > 0 {
			n += p.bytes
		}
	}
	return n
}

// Suspend gives back the memory of all pieces that have some, and closes the pieces of peers. The
// addresses stay. All ranks have to call it, and no kernel of any rank may use the memory until Resume.
func (r *Range) Suspend() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.with(func() error {
		var errs []error
		for i := range r.pieces {
			p := &r.pieces[i]
			p.again = p.granted
			errs = append(errs, p.unmap(r.cfg.Driver))
		}
		for _, v := range r.views {
			v.mu.Lock()
			v.again = slices.Clone(v.have)
			errs = append(errs, v.unmap(r.cfg.Driver))
			v.mu.Unlock()
		}
		return errors.Join(errs...)
	})
}

// Resume gives the same pieces memory again, zero. All ranks must have called Suspend before one
// calls Resume, and all must have called Resume before a kernel uses the memory.
func (r *Range) Resume() error {
	for i := range r.pieces {
		for _, dev := range r.pieces[i].again {
			if err := r.make(i, dev); err != nil {
				return err
			}
		}
		r.mu.Lock()
		r.pieces[i].again = nil
		r.mu.Unlock()
	}
	for _, v := range r.views {
		for i, had := range v.again {
			if !had {
				continue
			}
			if err := r.bringFrom(v.peer, v, i); err != nil {
				return err
			}
		}
		v.again = nil
	}
	return nil
}
