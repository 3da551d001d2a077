package life

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
)

// ranks runs a test of two ranks of a real group in virtual time.
func ranks(t *testing.T, f func(t *testing.T, groups []bootstrap.Group, lives []*Life)) {
	synctest.Test(t, func(t *testing.T) {
		groups := bootstrap.Local(2)
		var lives []*Life
		for _, g := range groups {
			lives = append(lives, New(g, "h", "", time.Minute))
		}
		f(t, groups, lives)
		for r, l := range lives {
			l.Close()
			groups[r].Close()
		}
	})
}

// meet has both ranks meet, and returns for each what it got and its error.
func meet(lives []*Life, ctxs [2]context.Context, methods [2]call.Method) (got [2][][]byte, errs [2]error) {
	var all sync.WaitGroup
	for r, l := range lives {
		all.Go(func() { got[r], errs[r] = l.Meet(ctxs[r], time.Minute, methods[r], []byte{byte(10 + r)}) })
	}
	all.Wait()
	return got, errs
}

var (
	always = [2]context.Context{context.Background(), context.Background()}
	split  = [2]call.Method{call.Split, call.Split}
)

// together is a meeting that goes well.
func together(t *testing.T, lives []*Life) {
	got, errs := meet(lives, always, split)
	for r := range lives {
		require.NoError(t, errs[r])
		require.Equal(t, [][]byte{{10}, {11}}, got[r])
		require.NoError(t, lives[r].Err())
	}
}

func TestMeet(t *testing.T) {
	t.Run("agreement", func(t *testing.T) {
		ranks(t, func(t *testing.T, _ []bootstrap.Group, lives []*Life) {
			together(t, lives)
			together(t, lives)
			require.EqualValues(t, 2, lives[0].Turn.Seq(), "a meeting has a number")
		})
	})
	t.Run("different methods", func(t *testing.T) {
		ranks(t, func(t *testing.T, _ []bootstrap.Group, lives []*Life) {
			_, errs := meet(lives, always, [2]call.Method{call.Split, call.Register})
			for _, err := range errs {
				require.ErrorIs(t, err, call.ErrMismatch)
			}
			require.EqualError(t, errs[0],
				"ranks disagree: rank 0 calls Split, rank 1 calls Register; all ranks must make the same calls in the same order")
			require.EqualError(t, errs[1],
				"ranks disagree: rank 1 calls Register, rank 0 calls Split; all ranks must make the same calls in the same order")
			together(t, lives)
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		ranks(t, func(t *testing.T, _ []bootstrap.Group, lives []*Life) {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			_, errs := meet(lives, [2]context.Context{context.Background(), over}, split)
			require.ErrorIs(t, errs[1], context.Canceled)
			require.ErrorIs(t, errs[0], call.ErrPeer)
			require.ErrorContains(t, errs[0], "rank 1")
			together(t, lives)
		})
	})
	t.Run("not all come", func(t *testing.T) {
		ranks(t, func(t *testing.T, _ []bootstrap.Group, lives []*Life) {
			begin := time.Now()
			_, err := lives[0].Meet(context.Background(), 20*time.Second, call.Split, nil)
			require.Equal(t, 20*time.Second, time.Since(begin))
			require.ErrorIs(t, err, call.ErrTimeout)
			require.ErrorContains(t, err, "not all ranks came within 20s (Config.JoinTimeout)")
			require.ErrorContains(t, err, "rank 1")
		})
	})
	t.Run("one has left", func(t *testing.T) {
		ranks(t, func(t *testing.T, groups []bootstrap.Group, lives []*Life) {
			lives[1].Close()
			require.NoError(t, groups[1].Close())
			lives[1], groups[1] = New(newFakeGroup(), "h", "", 0), bootstrap.Local(1)[0] // nothing is left to close
			_, err := lives[0].Meet(context.Background(), time.Minute, call.Split, nil)
			require.ErrorIs(t, err, call.ErrLeft)
			require.ErrorContains(t, err, "rank 1")
		})
	})
	t.Run("one dies", func(t *testing.T) {
		ranks(t, func(t *testing.T, groups []bootstrap.Group, lives []*Life) {
			time.AfterFunc(time.Second, func() { bootstrap.Drop(groups[1]) })
			_, err := lives[0].Meet(context.Background(), time.Minute, call.Split, nil)
			require.ErrorIs(t, err, call.ErrPeer)
			require.ErrorContains(t, err, "rank 1 died")
		})
	})
	t.Run("aborted", func(t *testing.T) {
		ranks(t, func(t *testing.T, _ []bootstrap.Group, lives []*Life) {
			time.AfterFunc(time.Second, func() { lives[1].Abort(errors.New("enough")) })
			_, err := lives[0].Meet(context.Background(), time.Minute, call.Split, nil)
			require.ErrorIs(t, err, call.ErrPeer)
			require.ErrorContains(t, err, "rank 1 failed: Abort: rank 1 on h: aborted: enough")
			_, err = lives[1].Meet(context.Background(), time.Minute, call.Split, nil)
			require.ErrorIs(t, err, call.ErrAborted)
		})
	})
	t.Run("closed", func(t *testing.T) {
		ranks(t, func(t *testing.T, groups []bootstrap.Group, lives []*Life) {
			require.NoError(t, groups[0].Close())
			_, err := lives[0].Meet(context.Background(), time.Minute, call.Split, nil)
			require.ErrorIs(t, err, bootstrap.ErrClosed)
		})
	})
}

// TestMeetAndOperation: a rank that meets while another is in an operation is found, and both
// hear of it.
func TestMeetAndOperation(t *testing.T) {
	ranks(t, func(t *testing.T, _ []bootstrap.Group, lives []*Life) {
		c := &call.Call{Kind: call.Barrier}
		var failed *call.Error
		done := make(chan struct{})
		go func() { // a Barrier that waits for rank 0
			defer close(done)
			l := lives[1]
			l.Turn.Lock(context.Background())
			defer l.Turn.Unlock()
			l.Turn.Next(call.StampOf(c, call.Auto), Collective, false)
			time.Sleep(Slow)
			l.Inquire() // as its Guard would; a Guard does not know virtual time
			<-l.Stopped()
			failed = l.Fail(c, l.Turn.Seq(), l.Guard.Aborted(), nil)
		}()
		lives[0].Turn.Lock(context.Background())
		_, err := lives[0].Meet(context.Background(), time.Minute, call.Split, nil)
		lives[0].Turn.Unlock()
		<-done
		for _, err := range []error{err, failed} {
			require.ErrorIs(t, err, call.ErrMismatch)
			require.ErrorContains(t, err, "calls Split #1")
			require.ErrorContains(t, err, "calls Barrier #1")
		}
	})
}
