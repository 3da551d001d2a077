package check

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAgreed: sweeps show a gap only if two or more do, and none shows another.
func TestAgreed(t *testing.T) {
	hole, other, none := gap{1400, 1420}, gap{576, 800}, gap{}
	for _, c := range []struct {
		results []gap
		want    gap
	}{
		{[]gap{hole, hole, hole}, hole},
		{[]gap{none, hole, hole}, hole},
		{[]gap{none, none, hole}, none},
		{[]gap{hole, other, hole}, none},
		{[]gap{{Passes: 1500}, {Passes: 1500}, none}, gap{Passes: 1500}},
		{[]gap{{Passes: 1500}, hole, hole}, none},
		{[]gap{none, none, none}, none},
	} {
		require.Equal(t, c.want, agreed(c.results), "%v", c.results)
	}
}

// TestGaps finds between which sizes a direction drops packets, and finds nothing where packets are lost by chance, or
// where one of full size comes late.
func TestGaps(t *testing.T) {
	hole := func(longest int) func(a, b byte) fakeLink {
		return func(a, b byte) fakeLink {
			l := healthy(a, b)
			if a == 1 {
				l.longest = longest
			}
			return l
		}
	}
	lossy := func(a, b byte) fakeLink { l := healthy(a, b); l.loss = 0.3; return l }
	for _, c := range []struct {
		name string
		link func(a, b byte) fakeLink
		want [2]gap
		ill  bool
	}{
		{"none", healthy, [2]gap{}, false},
		{"a usual MTU", hole(1400), [2]gap{{1400, 1420}, {Passes: 1500}}, true},
		{"another one", hole(1479), [2]gap{{1450, 1480}, {Passes: 1500}}, true},
		{"a small one", hole(576), [2]gap{{576, 800}, {Passes: 1500}}, true},
		{"loss", lossy, [2]gap{}, false},
		{"a long way", func(a, b byte) fakeLink { l := healthy(a, b); l.delay = time.Second / 4; return l }, [2]gap{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFakeNet(c.link)
				defer fake.close()
				fake.owns(1, net.IPv4(10, 0, 0, 1))
				ln := fake.listen(2, net.IPv4(10, 0, 0, 2))
				go func() {
					for {
						far, err := ln.Accept()
						if err != nil {
							return
						}
						go func() { _ = answerLink(far, phases{}) }()
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				dial := func(ctx context.Context) (net.Conn, error) {
					return fake.dial(ctx, 1, "10.0.0.1", ln.Addr().String(), fakePacket)
				}
				conn, err := dial(ctx)
				require.NoError(t, err)
				defer bounded(ctx, conn)()
				found, err := gaps(ctx, conn, dial)
				if c.ill {
					require.Equal(t, errGap, err)
				} else {
					require.NotEqual(t, errGap, err)
				}
				require.Equal(t, c.want, found)
			})
		})
	}
}
