package fifo

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

// TestWakeUps sends many messages between ends that park at once, so that
// every race between parking and waking is met. A lost wake would cost a whole
// parkTime; a few of those and the test is late.
func TestWakeUps(t *testing.T) {
	defer goleak.VerifyNone(t)
	const messages = 5000
	g := Geometry{Slots: 2, SlotBytes: 64}
	for _, kind := range []string{"shared", "local"} {
		for _, yield := range []time.Duration{-1, 2 * time.Microsecond} {
			t.Run(fmt.Sprintf("%s, yield for %v", kind, yield), func(t *testing.T) {
				p, c, err := NewLocal(g, Waiting{}, Waiting{})
				require.NoError(t, err)
				if kind == "shared" {
					p, c, _ = shared(t, g, Waiting{})
				}
				p.yieldFor, c.yieldFor = yield, yield
				start := time.Now()
				var parties errgroup.Group
				parties.Go(func() error {
					for i := range messages {
						if i%100 == 0 {
							time.Sleep(time.Microsecond) // let the other side park
						}
						if _, err := p.Reserve(i % 64); err != nil {
							return err
						}
						if err := p.Publish(Stamp{uint64(i)}); err != nil {
							return err
						}
					}
					return nil
				})
				parties.Go(func() error {
					for i := range messages {
						b, s, err := c.Next()
						if err != nil {
							return err
						}
						if s[0] != uint64(i) || b.Len() != i%64 {
							return fmt.Errorf("message %d of %d bytes instead of %d", s[0], b.Len(), i)
						}
						if i%77 == 0 {
							time.Sleep(time.Microsecond)
						}
						if err := c.Release(); err != nil {
							return err
						}
					}
					return nil
				})
				require.NoError(t, parties.Wait())
				t.Logf("%v a message", time.Since(start)/messages)
			})
		}
	}
}

// TestParkers: a goroutine that sleeps, or is about to, is woken.
func TestParkers(t *testing.T) {
	for name, p := range map[string]parker{"shared": sharedParker{}, "local": newLocalParker()} {
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			t.Run(fmt.Sprint(name, delay), func(t *testing.T) {
				var state atomic.Uint32
				state.Store(parked)
				woken := make(chan bool)
				go func() {
					p.park(&state, time.Hour)
					close(woken)
				}()
				time.Sleep(delay)
				state.Store(running)
				p.wake(&state)
				select {
				case <-woken:
				case <-time.After(10 * time.Second):
					t.Fatal("it sleeps on")
				}
			})
		}
	}
}

// A Publish for a Consumer that has closed succeeds; the Producer's next call fails.
func TestPublishToNobody(t *testing.T) {
	p, c, _ := shared(t, Geometry{Slots: 4, SlotBytes: 8}, Waiting{})
	_, err := p.Reserve(1)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, p.Publish(Stamp{}))
	_, err = p.Reserve(1)
	require.ErrorIs(t, err, ErrClosed)
}
