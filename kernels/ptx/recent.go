package ptx

import (
	"slices"
	"sync"
)

// Text is the PTX of a module, 9 to 260 kB. The last few are kept, for ranks of one process load the same modules;
// others are decompressed anew, in some ms. The text must not be changed.
func Text(n Name) ([]byte, error) { return recent.text(n) }

// texts are the last keptTexts modules that were asked for.
type texts struct {
	mu   sync.Mutex
	list []named
}

type named struct {
	name Name
	text []byte
}

// keptTexts is how many modules a communicator loads for its first operations, and a few more: about 1 MB in all.
const keptTexts = 8

var recent texts

func (r *texts) text(n Name) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.list, func(m named) bool { return m.name == n })
	if at < 0 {
		text, err := inflate(n)
		if err != nil {
			return nil, err
		}
		r.list = append(r.list, named{n, text})
		at = len(r.list) - 1
	}
	m := r.list[at]
	r.list = append(slices.Delete(r.list, at, at+1), m)
	if len(r.list) > keptTexts {
		r.list = slices.Delete(r.list, 0, 1)
	}
	return m.text, nil
}
