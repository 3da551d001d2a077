package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// proxied stores to shared memory, has a fence, and comes to a place where a bulk copy
// would begin: the conversion.
const proxied = `.version 8.0
.target sm_90
.address_size 64
.visible .entry proxied() {
	.reg .u32 %r<3>;
	.shared .align 16 .b8 tile[16];
	mov.u32 %r1, tile;
	st.shared.u32 [%r1], 5;
	FENCE
	popc.b32 %r2, %r1;
	ret;
}`

func TestFenceProxy(t *testing.T) {
	for fence, missing := range map[string]bool{
		"":                               true,
		"membar.sys;":                    true,
		"bar.sync 0;":                    true,
		"fence.proxy.alias;":             true,
		"fence.proxy.async.global;":      true,
		"fence.proxy.async;":             false,
		"fence.proxy.async.shared::cta;": false,
	} {
		var copied []*weakmem.Fault
		m := boot(t, strings.Replace(proxied, "FENCE", fence, 1), options{trace: func(e simt.Event) {
			if e.In.Op == "popc" {
				copied = append(copied, e.LoadAsync(0, 0))
			}
		}})
		g := m.grid("proxied", 1, 1)
		m.start(g)
		require.Len(t, copied, 1)
		if !missing {
			require.Nil(t, copied[0], fence)
			require.Empty(t, m.found)
			continue
		}
		require.NotNil(t, copied[0], fence)
		require.Equal(t, weakmem.NoProxyFence, copied[0].Kind)
		require.Contains(t, copied[0].Error(), "the store of 4 bytes by kernel proxied, line 8")
	}
}
