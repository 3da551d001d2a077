package cudaemu

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A processLog is what this process tells others that share memory with it, in a chunk that they open: see
// weakmem.Log. The label of shared memory has the descriptors of the logs of all processes that share it.
type processLog struct {
	m     *Machine
	chunk *chunk
	name  uint64 // process and descriptor
	told  bool   // the memory model writes to the log
	sites map[weakmem.TrailSite]uint32
	peers []*weakmem.Peer
	known map[uint64]int // index in peers by name, -1: it could not be opened
	opens []*chunk       // of peers
	seen  map[*chunk]int // slots of shared chunks that were looked at
}

const (
	logBytes  = 1 << 23
	siteBytes = 512 // of a site in the log: a word that is its length once it is there, and JSON
	logSites  = logBytes/siteBytes - 1

	trailSlots = 64  // processes that share memory
	slotsAt    = 128 // in the label
)

func word(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[0])) }

// slot is the name of the log of one of the processes that share the chunk, 0 if there are not so many.
func (c *chunk) slot(i int) *atomic.Uint64 { return word(c.raw[len(c.raw)-labelBytes+slotsAt+8*i:]) }

// openLog makes the log. Without one races with other processes are not found.
func (m *Machine) openLog() {
	c, err := newChunk(label{id: hash("log", m.id), owner: m.id, size: logBytes, kind: chunkLog}, false)
	if err != nil {
		return
	}
	m.log = &processLog{m: m, chunk: c, name: uint64(os.Getpid())<<32 | uint64(c.fd),
		sites: map[weakmem.TrailSite]uint32{}, known: map[uint64]int{}, seen: map[*chunk]int{}}
}

// trailed is the trail of a chunk that this process shares with others, nil if there is none.
func (m *Machine) trailed(k *chunk) *weakmem.Trail {
	if k.trail == nil || m.log == nil {
		return nil
	}
	if !m.log.told {
		m.log.told = true
		data := m.log.chunk.data
		m.mem.SetLog(&weakmem.Log{Releases: word(data), Strong: word(data[8:]), Number: m.log.number, Peers: m.log.all})
	}
	own := -1
	for i := range trailSlots {
		if k.slot(i).CompareAndSwap(0, m.log.name) || k.slot(i).Load() == m.log.name {
			own = i
			break
		}
	}
	if own < 0 {
		return nil
	}
	m.log.seen[k] = 0
	words := len(k.trail) / 2
	return &weakmem.Trail{Writes: k.trail[:words], Reads: k.trail[words:], Slot: own,
		Shared: func() bool { return k.slot(1).Load() != 0 }, Peer: func(i int) int { return m.log.peer(k, i) }}
}

// export says that other processes may have a chunk of MemCreate from now on.
func (m *Machine) export(k *chunk) {
	k.exported = true
	for _, r := range m.regions.sorted {
		if r.chunk == k {
			m.share(r)
		}
	}
}

// number is the number of a site, which it writes into the log.
func (l *processLog) number(s weakmem.TrailSite) uint32 {
	n, ok := l.sites[s]
	if !ok && len(l.sites) < logSites {
		sourced := s
		sourced.Source = l.m.source(s.Kernel, s.Line)
		text, _ := json.Marshal(sourced)
		if n = uint32(len(l.sites) + 1); len(text) > siteBytes-8 {
			n = 0
		} else {
			at := l.chunk.data[siteBytes*int(n):][:siteBytes]
			copy(at[8:], text)
			word(at).Store(uint64(len(text)))
		}
		l.sites[s] = n
	}
	return n
}

// all are the peers: those of all chunks that this process shares.
func (l *processLog) all() []*weakmem.Peer {
	for k, seen := range l.seen {
		if k.raw == nil { // closed
			delete(l.seen, k)
			continue
		}
		for ; seen < trailSlots && k.slot(seen).Load() != 0; seen++ {
			l.open(k.slot(seen).Load())
		}
		l.seen[k] = seen
	}
	return l.peers
}

// peer is the index of the process of a slot.
func (l *processLog) peer(k *chunk, slot int) int {
	if i, ok := l.known[k.slot(slot).Load()]; ok {
		return i
	}
	return -1
}

// open opens the log of another process.
func (l *processLog) open(name uint64) {
	if _, ok := l.known[name]; ok || name == l.name {
		return
	}
	l.known[name] = -1
	c, err := openOf(int(name>>32), int(uint32(name)))
	if err != nil || c.label.kind != chunkLog {
		return
	}
	l.known[name] = len(l.peers)
	l.opens = append(l.opens, c)
	l.peers = append(l.peers, &weakmem.Peer{Process: int(name >> 32), Releases: word(c.data), Strong: word(c.data[8:]),
		Site: func(n uint32) (s weakmem.TrailSite, ok bool) {
			if n == 0 || n > logSites {
				return s, false
			}
			at := c.data[siteBytes*int(n):][:siteBytes]
			length := word(at).Load()
			return s, length > 0 && length <= siteBytes-8 && json.Unmarshal(at[8:8+length], &s) == nil
		}})
}

// close closes the log. Others that have opened it keep it.
func (l *processLog) close() {
	if l == nil {
		return
	}
	l.chunk.close()
	for _, c := range l.opens {
		c.close()
	}
}
