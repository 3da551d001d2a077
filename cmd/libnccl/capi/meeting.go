package capi

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/bootstrap"
)

// meets is the ID under which the ranks of a new communicator meet. The ID of NCCL_COMM_ID is the same for all
// communicators, so each communicator gets one derived from it, by a count: each process counts its communicators of
// the same size and rank. The counts agree since all ranks make communicators in the same order.
func (l *Library) meets(id bootstrap.ID, size, rank int) bootstrap.ID {
	addr, secret := l.env.meeting()
	if addr == "" {
		return id
	}
	if fixed, err := bootstrap.IDFor(addr, secret); err != nil || id != fixed {
		return id
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met[[2]int{size, rank}]++
	return id.Derive(fmt.Sprintf("%d ranks, time %d", size, l.met[[2]int{size, rank}]))
}

// again is the ID under which the ranks of a communicator meet for a purpose; nil if they cannot.
func (c *comm) again(purpose string) *bootstrap.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meeting == nil {
		return nil
	}
	id := c.meeting.Derive(purpose)
	return &id
}

// meetAgain sets the ID under which the ranks of a communicator will meet after a failure.
func (c *comm) meetAgain(id *bootstrap.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meeting = id
}

// afterFailure is the ID under which all ranks meet that exclude the same ranks, a new one each time.
func (c *comm) afterFailure(exclude []int) *bootstrap.ID {
	who := fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(exclude))))
	c.mu.Lock()
	if c.shrinks == nil {
		c.shrinks = map[string]int{}
	}
	c.shrinks[who]++
	purpose := fmt.Sprintf("without %s, time %d", who, c.shrinks[who])
	c.mu.Unlock()
	return c.again(purpose)
}
