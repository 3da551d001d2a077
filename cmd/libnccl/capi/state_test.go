package capi

import (
	"errors"

	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// transcript has a line for each event: the event, the error of the call, and the communicator's state afterwards.
const transcript = `
made                : not ready
open                : takes calls
begin               : not ready
begin               : not ready
finish              : not ready
finish              : takes calls
suspend             : suspended
begin               : suspended
finish              : suspended
resume              : takes calls
begin               : not ready
close               : being destroyed
begin, being destroyed : being destroyed
close, being destroyed : being destroyed
finish              : being destroyed, quiet

made                : not ready
begin               : not ready
finish with x       : x
begin               : x
finish with y       : x
close               : x, quiet

made                : not ready
close               : being destroyed, quiet
begin, being destroyed : being destroyed, quiet

made                : not ready
open                : takes calls
finalize            : finalized
begin               : finalized
close               : being destroyed
finish              : being destroyed, quiet
`

func TestState(t *testing.T) {
	var s state
	for _, line := range strings.Split(transcript, "\n") {
		said, want, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		event, told, _ := strings.Cut(strings.TrimSpace(said), ", ")
		var err error
		switch event {
		case "made":
			s = state{}
		case "open":
			s.open = true
		case "begin":
			err = s.begin()
		case "finish":
			s.finish(nil)
		case "finish with x":
			s.finish(errors.New("x"))
		case "finish with y":
			s.finish(errors.New("y"))
		case "suspend":
			s.barred = errSuspended
		case "finalize":
			s.barred = errFinalized
		case "resume":
			s.barred = nil
		case "close":
			err = s.close()
		default:
			t.Fatal(line)
		}
		if told == "" {
			require.NoError(t, err, line)
		} else {
			require.ErrorContains(t, err, told, line)
		}
		is := "takes calls"
		if why := s.takes(); why != nil {
			is = why.Error()
			for _, word := range []string{"not ready", "suspended", "finalized", "being destroyed"} {
				if strings.Contains(is, word) {
					is = word
				}
			}
		}
		if s.quiet() {
			is += ", quiet"
		}
		require.Equal(t, strings.TrimSpace(want), is, line)
	}
}

// TestAbortAgainstGroups: an Abort by another thread, at any moment of a group that splits, causes no race and no hang.
func TestAbortAgainstGroups(t *testing.T) {
	t.Parallel()
	for round := range tier.Count(15, 60) {
		l := onHost()
		comms := initAll(t, l, 2)
		fallen := make(chan struct{})
		go func() {
			defer close(fallen)
			time.Sleep(time.Duration(round) * time.Millisecond / 4)
			for _, c := range comms {
				_ = l.Abort(c)
			}
		}()
		var parts []uintptr
		for err := error(nil); err == nil; {
			g := l.GroupStart()
			for i, c := range comms {
				part, e := l.Split(g, c, 0, i, inBackground)
				if e == nil || e == errInProgress {
					parts = append(parts, part)
				}
			}
			_, err = l.GroupEnd(g)
			if err == errInProgress {
				err = nil
			}
			for _, c := range comms {
				for state, _, e := l.AsyncError(c); e == nil && state == InProgress; state, _, e = l.AsyncError(c) {
					time.Sleep(100 * time.Microsecond)
				}
			}
		}
		<-fallen
		for _, p := range parts {
			within(t, func() { _ = l.Abort(p) })
		}
		within(t, l.closing.Wait)
	}
}
