package paths

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

// A fake is a transport that goes no further than a choice.
type fake struct {
	transport.Transport
	name    string
	refused string // why this rank cannot listen
	reach   func(a, b transport.Info) error
	listens int
}

func (f *fake) Name() string { return f.name }
func (f *fake) Close() error { return nil }

func (f *fake) Reach(a, b transport.Info) error {
	if f.reach == nil {
		return nil
	}
	return f.reach(a, b)
}

func (f *fake) Listen() ([]byte, error) {
	f.listens++
	if f.refused != "" {
		return nil, errors.New(f.refused)
	}
	return []byte(f.name), nil
}

// oneHost lets ranks of the same host through.
func oneHost(a, b transport.Info) error {
	if a.Host != b.Host {
		return errors.New("different hosts")
	}
	return nil
}

// The path of a pair: the best that both have, with the reasons against better
// ones, the same from both ends; else an error that names what to change.
func TestChoose(t *testing.T) {
	between := func(hosts [2]string, wish []string, refused ...string) *Agreement {
		a := &Agreement{transports: &Transports{made: map[string]transport.Transport{
			"shm": &fake{name: "shm", reach: oneHost}, "ib": &fake{name: "ib"}, "socket": &fake{name: "socket"},
		}}}
		for r, h := range hosts {
			a.profiles = append(a.profiles, Profile{Info: transport.Info{Rank: r, Host: h}, Hostname: h, Wish: wish})
			a.offers = append(a.offers, map[string]offer{"shm": {Refused: refused[r]}, "ib": {Refused: "no card"}, "socket": {}})
		}
		return a
	}
	all := []string{"shm", "ib", "socket"}
	for name, test := range map[string]struct {
		hosts   [2]string
		refused [2]string
		want    string
		against []string
	}{
		"best":    {[2]string{"x", "x"}, [2]string{"", ""}, "shm", nil},
		"apart":   {[2]string{"x", "y"}, [2]string{"", ""}, "socket", []string{"not shm (different hosts)", "not ib (rank 0 on x: no card)"}},
		"refused": {[2]string{"x", "x"}, [2]string{"", "no room"}, "socket", []string{"not shm (rank 1 on x: no room)", "not ib (rank 0 on x: no card)"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := between(test.hosts, all, test.refused[:]...)
			for _, ends := range [][2]int{{0, 1}, {1, 0}} {
				name, against, err := a.Choose(ends[0], ends[1])
				require.NoError(t, err)
				require.Equal(t, test.want, name)
				require.Equal(t, test.against, against)
			}
		})
	}
	_, _, err := between([2]string{"x", "x"}, []string{"shm"}, "no room", "").Choose(0, 1)
	require.ErrorContains(t, err, "no transport connects rank 0 on x and rank 1 on x: not shm (rank 0 on x: no room)")
	require.ErrorContains(t, err, "RINGO_TRANSPORT")
}
