package weakmem

const lineBytes = 128 // see Config.Lines

// lines are the units of all whole lines that some of these units are in.
func (p *pending) lines(units uint64) (all uint64) {
	const line = 1<<(lineBytes/8) - 1
	for at := (p.addr + lineBytes - 1) &^ (lineBytes - 1); at+lineBytes <= p.addr+p.n; at += lineBytes {
		if m := uint64(line) << ((at - p.addr&^7) / 8); units&m != 0 {
			all |= m
		}
	}
	return all
}

// backward copies words from memory that another process may store to, last word
// first. reveal stores them first word first.
func backward(dst, src []byte) {
	for i := len(src) - 8; i >= 0; i -= 8 {
		put(dst[i:], 8, strongGet(src[i:], 8))
	}
}
