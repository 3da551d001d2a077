package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// finish begins and finishes a copy by lane 0 of warp 0.
func finish(t *testing.T, b *Block, p Plan) *Transfer {
	c, f := b.Begin(0, 0, p)
	require.Nil(t, f)
	c.Finish()
	require.True(t, c.Advance())
	return c
}

// A copy may reach from one allocation into the next, and not into a gap.
func TestTransferAcrossAllocations(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := newScene(t, Config{Plain: plain})
		more := []byte{63: 7}
		require.NoError(t, s.m.Map(Allocation{Addr: 0x1040, Data: more, Name: "more"}))
		require.NoError(t, s.m.Map(Allocation{Addr: 0x2040, Data: make([]byte, 64), Name: "room"}))
		finish(t, s.a, Plan{Dst: 0x2000, Src: 0x1000, Bytes: 128, Align: 16, Async: true, Line: 1})
		s.a.End()
		s.b.End()
		s.g.End()
		got, ok := s.m.Find(0x2040)
		require.True(t, ok)
		require.Equal(t, more, got.Data)
		require.Empty(t, s.faults)

		_, f := s.a.Begin(0, 0, Plan{Dst: 0x2000, Src: 0x1040, Bytes: 128, Align: 16, Line: 1})
		require.NotNil(t, f)
		require.Equal(t, OutOfBounds, f.Kind)
		require.EqualValues(t, 0x1080, f.Addr)
	}
}

func TestTransferRefused(t *testing.T) {
	s := newScene(t, Config{Access: func(device int, a *Allocation) bool { return a.Name != "peer" }})
	for _, c := range []struct {
		plan Plan
		kind FaultKind
	}{
		{Plan{Dst: 0x3000, Src: 0x1000, Bytes: 16, Align: 16}, NoAccess},
		{Plan{Dst: 0x2000, Src: 0x1004, Bytes: 16, Align: 16}, Misaligned},
		{Plan{Dst: 0x70, ToShared: true, Src: 0x1000, Bytes: 32, Align: 16}, OutOfBounds},
	} {
		_, f := s.a.Begin(0, 0, c.plan)
		require.NotNil(t, f)
		require.Equal(t, c.kind, f.Kind)
	}
}

// A copy of bytes that nobody wrote is no fault, and nobody has written the copy.
func TestTransferOfUnwritten(t *testing.T) {
	s := newScene(t, Config{})
	store(s.a, 0, lane0, 0, How{Shared: true})
	c := finish(t, s.a, Plan{Dst: 0, ToShared: true, Src: 0x2000, Bytes: 16, Align: 16})
	s.a.Know(0, lane0, c.Done())
	s.faults = nil
	load(s.a, 0, lane0, 0, How{Shared: true})
	require.Len(t, s.faults, 1)
	require.Equal(t, Uninitialized, s.faults[0].Kind)
}

// Two copies to the same place race with each other, unless the second begins after the
// first was waited for; so does a read by a lane that did not wait, though another did.
func TestTransferOrder(t *testing.T) {
	for _, waits := range []bool{false, true} {
		s := newScene(t, Config{})
		p := Plan{Dst: 0x2000, Src: 0x1000, Bytes: 32, Align: 16, Async: true, Line: 1}
		first := finish(t, s.a, p)
		if waits {
			s.a.Know(0, lane0, first.Done())
		}
		p.Line = 2
		second := finish(t, s.a, p)
		require.Len(t, s.faults, b2i(!waits))
		s.a.Know(0, lane0, second.Seen())
		require.Nil(t, store(s.a, 0, lane0, 0x1000, How{Line: 3}))
		s.faults = nil
		s.a.Know(0, lane0, second.Done())
		require.Nil(t, load(s.a, 0, lane0, 0x2000, How{Line: 4}))
		require.Empty(t, s.faults)
		require.Nil(t, load(s.a, 1, lane0, 0x2000, How{Line: 5}))
		require.NotEmpty(t, s.faults)
		require.Contains(t, s.faults[len(s.faults)-1].Error(),
			"the asynchronous copy's store of 32 bytes by kernel combine, line")
	}
}
