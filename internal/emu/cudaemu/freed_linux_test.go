package cudaemu_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// An access to memory that another process has freed, by a mapping of this process, is reported: by a copy engine, a
// queue's write and a kernel, in memory of both kinds.
func TestFreedElsewhere(t *testing.T) {
	touch := map[string]func(e *env, p, out uintptr) error{
		"copy":  func(e *env, p, out uintptr) error { return e.MemsetD8(p, 1, 128) },
		"queue": func(e *env, p, out uintptr) error { return e.StreamWriteValue32(0, p, 1, 0) },
		"kernel": func(e *env, p, out uintptr) error {
			launchOf(e, ptxText, "exchange", 1, 1, 0, &exchangeArgs{p, out, out, 3, 1})
			return nil
		},
	}
	for _, way := range []string{"ipc", "mapped"} {
		for by, touch := range touch {
			t.Run(way+", "+by, func(t *testing.T) {
				e := start(t, cudaemu.Config{Devices: 2, Seed: 5})
				c := startChild(e, way+" freed", 1)
				_, theirs, out := e.trade(way, c)
				e.ok(e.MemsetD8(theirs, 0, 128))
				e.ok(e.CtxSynchronize())
				c.say("free")
				require.Equal(t, "freed", c.hear())
				err := touch(e, theirs, out)
				if err == nil {
					err = e.CtxSynchronize()
				}
				require.ErrorContains(t, err, "freed by the process whose memory it is")
				c.say("done")
			})
		}
	}
}

// freedChild is the other process of TestFreedElsewhere.
func freedChild(t *testing.T, way string) {
	e := start(t, cudaemu.Config{Devices: 2, Seed: 6})
	e.use(1)
	c := &child{env: e, in: os.NewFile(4, "out"), out: os.NewFile(3, "in")}
	mine, _, _ := e.trade(way, c)
	require.Equal(t, "free", c.hear())
	if way == "ipc" {
		e.ok(e.MemFree(mine))
	} else {
		h := must.Get(e.MemRetainAllocationHandle(mine))
		_, n, err := e.MemGetAddressRange(mine)
		e.ok(err)
		e.ok(e.MemUnmap(mine, n))
		e.ok(e.MemRelease(h))
		e.ok(e.MemRelease(h))
	}
	c.say("freed")
	c.hear()
	os.Exit(0) // the memory is gone that the cleanups of the test would free
}
