package ringo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
)

// NoColor is the color of a rank that becomes a member of no part.
const NoColor = -1

// A splitNote is what a rank tells the others of its part.
type splitNote struct {
	Color, Key, Rank int
	Bad              string        `json:",omitempty"` // what is wrong with this rank's call
	ID               *bootstrap.ID `json:",omitempty"` // where its part meets, of the first rank of a part
}

// Split divides a communicator: ranks of one color (≥ 0) become a new
// communicator, ordered by key and then by rank. All ranks must call it
// together; it waits for them, and for its turn, at most Config.JoinTimeout. A rank with NoColor gets nil.
// The new communicator has the Config of the old one and a life of its own.
//
// What is wrong with one rank's arguments is an error on all (ErrInvalid). That, and a rank
// whose ctx ends before all have come, leave the communicator usable.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if err := c.absent("Split"); err != nil {
		return nil, err
	}
	return c.SplitWith(ctx, color, key, c.cfg)
}

// SplitWith is Split, but the new communicator has the given Config, except for its meeting point, rank and size.
func (c *Comm) SplitWith(ctx context.Context, color, key int, cfg Config) (*Comm, error) {
	if err := c.absent("Split"); err != nil {
		return nil, err
	}
	cfg, bad := cfg.fill(os.Getenv) // before the ranks meet: the others would wait for a part that cannot be
	var id *bootstrap.ID
	var members []int
	err := c.agree(ctx, func(ctx context.Context) (err error) {
		id, members, err = splitParts(ctx, c, color, key, bad)
		return err
	})
	if err != nil {
		return nil, c.life.ErrorOf("Split", err)
	}
	if color == NoColor {
		return nil, nil
	}
	cfg.ID, cfg.Rank, cfg.Size = id, slices.Index(members, c.Rank()), len(members)
	child, err := c.openChild(ctx, "Split", cfg, members)
	if err != nil && id != nil && members[0] == c.Rank() {
		bootstrap.Stop(*id)
	}
	return child, err
}

// agree calls f, in which all ranks meet, in this rank's turn. f's context ends after Config.JoinTimeout.
func (c *Comm) agree(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.JoinTimeout)
	defer cancel()
	return c.inTurn(ctx, func() error { return f(ctx) })
}

// splitParts agrees with all ranks on the parts. It returns where this rank's part meets, and the part's ranks in
// their order. bad is what is wrong with this rank's call. The turn is held.
func splitParts(ctx context.Context, c *Comm, color, key int, bad error) (id *bootstrap.ID, members []int, err error) {
	if err := c.life.Refuse(); err != nil {
		return nil, nil, err
	}
	mine := splitNote{Color: color, Key: key, Rank: c.Rank()}
	if bad != nil {
		mine.Bad = bad.Error()
	} else if color < 0 && color != NoColor {
		mine.Bad = fmt.Sprintf("color %d is neither NoColor nor a number from 0", color)
	}
	notes, err := meetSplit(ctx, c, call.Split, mine)
	if err != nil {
		return nil, nil, err
	}
	var part []splitNote
	for _, n := range notes {
		if n.Bad != "" {
			return nil, nil, fmt.Errorf("%w: rank %d: %s", ErrInvalid, n.Rank, n.Bad)
		}
		if n.Color == color {
			part = append(part, n)
		}
	}
	slices.SortStableFunc(part, func(a, b splitNote) int { return cmp.Compare(a.Key, b.Key) })
	for _, n := range part {
		members = append(members, n.Rank)
	}

	hosts := color != NoColor && members[0] == c.Rank() && len(part) > 1
	notes, err = meetingsOfParts(ctx, c, color, hosts)
	if err != nil || color == NoColor {
		return nil, nil, err
	}
	return notes[members[0]].ID, members, nil
}

// meetingsOfParts are the IDs of all parts, in the notes of their first ranks. Each of these hosts the meeting of its
// part.
func meetingsOfParts(ctx context.Context, c *Comm, color int, hosts bool) ([]splitNote, error) {
	mine := splitNote{Color: color}
	if hosts {
		addr := ""
		switch at := bootstrap.Address(c.group); {
		case c.net.OnOneHost():
			addr = "127.0.0.1:0"
		case at.IsValid() && c.cfg.Interface == "" && c.cfg.Family == 0:
			// the other ranks have reached this host by that address
			addr = netip.AddrPortFrom(at, 0).String()
		}
		id, err := c.cfg.NewID(addr)
		if err != nil {
			mine.Bad = err.Error()
		} else {
			mine.ID = &id
		}
	}
	notes, err := meetSplit(ctx, c, call.SplitMeets, mine)
	for r := range notes {
		if bad := notes[r].Bad; bad != "" && err == nil {
			err = fmt.Errorf("rank %d: %s", r, bad)
		}
	}
	if err != nil && mine.ID != nil {
		bootstrap.Stop(*mine.ID)
	}
	return notes, err
}

// meetSplit returns the notes of all ranks, in order of rank.
func meetSplit(ctx context.Context, c *Comm, method call.Method, mine splitNote) ([]splitNote, error) {
	b, err := json.Marshal(&mine)
	if err != nil {
		return nil, err
	}
	all, err := c.life.Meet(ctx, c.cfg.JoinTimeout, method, b)
	if err != nil {
		return nil, err
	}
	notes := make([]splitNote, len(all))
	for r, b := range all {
		if err := json.Unmarshal(b, &notes[r]); err != nil {
			return nil, errors.Join(fmt.Errorf("what rank %d says", r), err)
		}
	}
	return notes, nil
}
