package fifo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shared is a queue in ordinary memory whose ends wait as if they were in two
// processes.
func shared(tb testing.TB, g Geometry, how Waiting) (*Producer, *Consumer, []byte) {
	memory := aligned(g.Size(), pageBytes)
	p, err := NewProducer(memory, g, how)
	require.NoError(tb, err)
	c, err := NewConsumer(memory, g, how)
	require.NoError(tb, err)
	return p, c, memory
}

// TestQueueModel drives a small queue at random beside a slice.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Geometry{
			Slots:     rapid.SampledFrom([]int{2, 4}).Draw(t, "slots"),
			SlotBytes: rapid.SampledFrom([]int{0, 1, 40, 41, 100}).Draw(t, "slot bytes"),
		}
		p, c, err := NewLocal(g, Waiting{}, Waiting{})
		require.NoError(t, err)
		type message struct {
			data  []byte
			stamp Stamp
		}
		var queue []message // published and not yet released
		var reserved []byte
		held := false
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n := rapid.IntRange(-1, g.SlotBytes+1).Draw(t, "n")
				if len(queue) == g.Slots {
					t.Skip("it would wait")
				}
				b, err := p.Reserve(n)
				if n < 0 || n > g.SlotBytes {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, n, b.Len())
				reserved = b.Bytes()
				for i := range reserved {
					reserved[i] = byte(rand.Int())
				}
			},
			"publish": func(t *rapid.T) {
				stamp := Stamp{rand.Uint64(), rand.Uint64()}
				err := p.Publish(stamp)
				if reserved == nil {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				queue = append(queue, message{bytes.Clone(reserved), stamp})
				reserved = nil
			},
			"free": func(t *rapid.T) { require.Equal(t, g.Slots-len(queue), p.Free()) },
			"next": func(t *rapid.T) {
				if len(queue) == 0 {
					t.Skip("it would wait")
				}
				b, stamp, err := c.Next()
				require.NoError(t, err)
				require.Equal(t, queue[0].stamp, stamp)
				require.True(t, bytes.Equal(queue[0].data, b.Bytes()))
				held = true
			},
			"release": func(t *rapid.T) {
				err := c.Release()
				if !held {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				held, queue = false, queue[1:]
			},
		})
	})
}

// TestQueueWraps passes the end of the 32-bit ordinals.
func TestQueueWraps(t *testing.T) {
	p, c, _ := shared(t, Geometry{Slots: 3, SlotBytes: 8}, Waiting{})
	for p.ordinal != 1+3*7 { // the first rounds, from zero memory
		exchange(t, p, c)
	}
	const start = math.MaxUint32 - 5
	for i := range uint32(3) {
		p.header(i).word.Store(uint64(uint32(start-3)+i) << 32)
	}
	p.ordinal, c.ordinal = start, start
	for range 20 {
		exchange(t, p, c)
	}
	require.Less(t, c.ordinal, uint32(20))
}

func exchange(t *testing.T, p *Producer, c *Consumer) {
	b, err := p.Reserve(8)
	require.NoError(t, err)
	binary.LittleEndian.PutUint64(b.Bytes(), p.sent)
	want := p.sent
	require.NoError(t, p.Publish(Stamp{want}))
	b, s, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, want, binary.LittleEndian.Uint64(b.Bytes()))
	require.Equal(t, Stamp{want}, s)
	require.NoError(t, c.Release())
}

func TestGeometry(t *testing.T) {
	require.EqualError(t, Geometry{1<<20 + 1, 64}.Check(), "queue of 1048577 slots: must be 2 to 1048576")
	require.EqualError(t, Geometry{2, math.MaxInt32 - pageBytes + 1}.Check(),
		fmt.Sprintf("slots of %d bytes: must be 0 to %d", math.MaxInt32-pageBytes+1, math.MaxInt32-pageBytes))
	if bits.UintSize == 64 {
		require.NoError(t, Geometry{1 << 20, math.MaxInt32 - pageBytes}.Check())
	}
	for _, c := range []struct {
		name string
		g    Geometry
		ok   bool
	}{
		{"one slot", Geometry{1, 64}, false},
		{"no slots", Geometry{0, 64}, false},
		{"too many slots", Geometry{1<<20 + 1, 64}, false},
		{"negative slots", Geometry{2, -1}, false},
		{"huge slots", Geometry{2, math.MaxInt32}, false},
		{"empty slots", Geometry{2, 0}, true},
		{"usual", Geometry{8, 1 << 17}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.ok {
				require.Error(t, c.g.Check())
				_, _, err := NewLocal(c.g, Waiting{}, Waiting{})
				require.Error(t, err)
				return
			}
			require.NoError(t, c.g.Check())
			_, err := NewProducer(make([]byte, c.g.Size()-1), c.g, Waiting{})
			require.ErrorContains(t, err, "needs")
			_, err = NewConsumer(aligned(c.g.Size()+1, lineBytes)[1:], c.g, Waiting{})
			require.ErrorContains(t, err, "aligned")
		})
	}
}

// TestCorrupt: what no honest peer writes is an error.
func TestCorrupt(t *testing.T) {
	soon := func() *Guard {
		g := new(Guard)
		g.SetDeadline(Now() + int64(5*time.Millisecond))
		return g
	}
	g := Geometry{Slots: 2, SlotBytes: 100}
	for name, word := range map[string]uint64{
		"length":       1<<32 | 101,
		"huge length":  1<<32 | math.MaxUint32,
		"ordinal":      2 << 32,
		"last ordinal": math.MaxUint32 << 32,
	} {
		t.Run(name, func(t *testing.T) {
			p, c, _ := shared(t, g, Waiting{Guard: soon()})
			p.header(0).word.Store(word)
			_, _, err := c.Next()
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
	for name, released := range map[string]uint64{"too many": 3, "huge": math.MaxUint64} {
		t.Run("released "+name, func(t *testing.T) {
			p, _, _ := shared(t, g, Waiting{Guard: soon()})
			for range 2 {
				_, err := p.Reserve(1)
				require.NoError(t, err)
				require.NoError(t, p.Publish(Stamp{}))
			}
			p.ctl.released.Store(released)
			_, err := p.Reserve(1)
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
}

// FuzzQueueMemory lets a hostile peer write what it likes into the shared
// memory. Nothing may panic, hang or leave the memory.
func FuzzQueueMemory(f *testing.F) {
	f.Add(uint64(1<<32|8), uint64(2<<32|41), uint32(0), uint64(0))
	f.Add(uint64(1<<32|200), uint64(0), uint32(1), uint64(5))
	f.Add(uint64(1<<32|100), uint64(3<<32), uint32(7), uint64(1))
	f.Fuzz(func(t *testing.T, first, second uint64, state uint32, released uint64) {
		g := Geometry{Slots: 2, SlotBytes: 100}
		guard := new(Guard)
		guard.SetDeadline(Now() + int64(200*time.Microsecond))
		p, c, memory := shared(t, g, Waiting{Guard: guard})
		p.header(0).word.Store(first)
		p.header(1).word.Store(second)
		p.ctl.producer.Store(state)
		for range 3 {
			b, _, err := c.Next()
			if err != nil {
				break
			}
			require.LessOrEqual(t, b.Len(), g.SlotBytes)
			start := b.Ptr() - addressOf(memory)
			require.LessOrEqual(t, start+uintptr(b.Len()), uintptr(len(memory)))
			_ = c.Release()
		}
		p.ctl.released.Store(released)
		p.ctl.consumer.Store(state)
		for range 5 {
			b, err := p.Reserve(100)
			if err != nil {
				break
			}
			clear(b.Bytes())
			_ = p.Publish(Stamp{})
		}
	})
}

func TestQueueAllocations(t *testing.T) {
	p, c, _ := shared(t, Geometry{Slots: 2, SlotBytes: 100}, Waiting{})
	for _, n := range []int{0, 8, 100} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, err := p.Reserve(n)
			err = errors.Join(err, p.Publish(Stamp{}))
			_, _, nerr := c.Next()
			if err = errors.Join(err, nerr, c.Release()); err != nil {
				t.Fatal(err)
			}
		}))
	}
}

// BenchmarkQueue is the cost of the four calls without a wait, both ends on one
// core.
func BenchmarkQueue(b *testing.B) {
	p, c, _ := shared(b, Geometry{Slots: 8, SlotBytes: 4096}, Waiting{})
	for b.Loop() {
		slot, _ := p.Reserve(8)
		slot.Bytes()[0]++
		_ = p.Publish(Stamp{1})
		slot, _, _ = c.Next()
		slot.Bytes()[0]++
		_ = c.Release()
	}
}

// A slot of a queue in one process takes as much memory as its longest message so far needs, and
// messages on their way stay unchanged when a longer one comes.
func TestLocalSlotsGrow(t *testing.T) {
	p, c, err := NewLocal(Geometry{Slots: 2, SlotBytes: 100_000}, Waiting{}, Waiting{})
	require.NoError(t, err)
	send := func(n int) {
		t.Helper()
		b, err := p.Reserve(n)
		require.NoError(t, err)
		for i := range b.Bytes() {
			b.Bytes()[i] = byte(n + i)
		}
		require.NoError(t, p.Publish(Stamp{}))
	}
	check := func(n int) {
		t.Helper()
		b, _, err := c.Next()
		require.NoError(t, err)
		require.Len(t, b.Bytes(), n)
		for i, v := range b.Bytes() {
			require.Equal(t, byte(n+i), v)
		}
		require.NoError(t, c.Release())
	}
	taken := func() []int { return []int{len(p.local[0]), len(p.local[1])} }
	send(InlineBytes)
	check(InlineBytes)
	require.Equal(t, []int{0, 0}, taken(), "small messages ride in headers")
	send(41)
	require.Equal(t, []int{0, 256}, taken())
	send(5000)
	check(41)
	send(5000)
	require.Equal(t, []int{8192, 8192}, taken())
	check(5000)
	check(5000)
	send(100_000)
	send(41)
	check(100_000)
	check(41)
	require.Equal(t, []int{100_032, 8192}, taken(), "no more than the longest message takes")
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for range 2 {
			_, _ = p.Reserve(8192)
			_ = p.Publish(Stamp{})
			_, _, _ = c.Next()
			_ = c.Release()
		}
	}))
}
