package ringo

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/bootstrap"
)

// NoColor is the color of a rank that becomes a member of no part.
const NoColor = -1

// Split divides a communicator: ranks of one color (≥ 0) become a new
// communicator, ordered by key and then by rank. All ranks must call it
// together. A rank with NoColor gets nil. The new communicator has the Config of
// the old one and a life of its own.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	fail := func(err error) (*Comm, error) {
		return nil, &Error{Op: "Split", Rank: c.rank, Host: c.cfg.hostname(), Peer: -1, Err: err}
	}
	if color < 0 && color != NoColor {
		return fail(fmt.Errorf("%w: color %d", ErrInvalid, color))
	}
	if err := c.Err(); err != nil {
		return fail(err)
	}
	c.queue.drain()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.JoinTimeout)
	defer cancel()

	wish := binary.LittleEndian.AppendUint64(nil, uint64(int64(color)))
	wish = binary.LittleEndian.AppendUint64(wish, uint64(int64(key)))
	blobs, err := c.group.AllGather(ctx, wish)
	if err != nil {
		return fail(err)
	}
	type member struct{ color, key, rank int }
	var part []member
	for r, b := range blobs {
		if len(b) != 16 {
			return fail(fmt.Errorf("rank %d called something else", r))
		}
		m := member{int(int64(binary.LittleEndian.Uint64(b))), int(int64(binary.LittleEndian.Uint64(b[8:]))), r}
		if m.color == color {
			part = append(part, m)
		}
	}
	slices.SortStableFunc(part, func(a, b member) int { return a.key - b.key })
	rank := slices.IndexFunc(part, func(m member) bool { return m.rank == c.rank })

	// The first rank of each part is host to the meeting of its part.
	var id bootstrap.ID
	var offer []byte
	if color != NoColor && rank == 0 {
		addr := ""
		if c.alone() {
			addr = "127.0.0.1:0"
		}
		if id, err = NewID(addr); err != nil {
			return fail(err)
		}
		offer = id[:]
	}
	offers, err := c.group.AllGather(ctx, offer)
	if err != nil {
		return fail(err)
	}
	if color == NoColor {
		return nil, nil
	}
	copy(id[:], offers[part[0].rank])
	cfg := c.cfg
	cfg.ID, cfg.Rank, cfg.Size = &id, rank, len(part)
	return Open(ctx, cfg)
}

// alone reports whether all ranks are on this host.
func (c *Comm) alone() bool {
	for _, p := range c.profiles {
		if p.Host != c.cfg.HostID {
			return false
		}
	}
	return true
}
