package engine

// moveMixed is move for a step that receives in slots of one size and sends in slots of
// another, as where a ring leaves its host. The smaller slots are parts of the larger ones.
func (st *step) moveMixed(j *Job, src, dst []byte, n int) error {
	large := max(st.recvWidth, st.sendWidth) * j.slot
	for at := 0; ; at += large {
		end := min(at+large, n)
		var err error
		if st.recvWidth > st.sendWidth {
			err = st.scatterSlot(j, cut(src, at, end), cut(dst, at, end), end-at)
		} else {
			err = st.gatherSlots(j, cut(src, at, end), cut(dst, at, end), end-at)
		}
		if err != nil || end == n {
			return err
		}
	}
}

// scatterSlot receives one slot of n bytes and sends it in smaller ones.
func (st *step) scatterSlot(j *Job, src, dst []byte, n int) error {
	got, err := st.receive(j, n)
	if err != nil {
		return err
	}
	small := st.sendWidth * j.slot
	for at := 0; ; at += small {
		end := min(at+small, n)
		v, err := st.reserve(j, end-at)
		if err != nil {
			return err
		}
		j.combine(st, v, got[at:end], cut(src, at, end))
		if err := st.publish(j, v, cut(dst, at, end)); err != nil {
			return err
		}
		if end == n {
			return st.release()
		}
	}
}

// gatherSlots receives n bytes in small slots and sends them in one. Like any step it receives
// before it reserves: otherwise all ranks of a ring could wait for each other's free slots.
func (st *step) gatherSlots(j *Job, src, dst []byte, n int) error {
	var v []byte
	small := st.recvWidth * j.slot
	for at := 0; ; at += small {
		end := min(at+small, n)
		got, err := st.receive(j, end-at)
		if err != nil {
			return err
		}
		if at == 0 {
			if v, err = st.reserve(j, n); err != nil {
				return err
			}
		}
		j.combine(st, v[at:end], got, cut(src, at, end))
		if err := st.release(); err != nil {
			return err
		}
		if end == n {
			return st.publish(j, v, dst)
		}
	}
}

// cut is a part of a slice, nil of nil.
func cut(b []byte, at, end int) []byte {
	if b == nil {
		return nil
	}
	return b[at:end]
}
