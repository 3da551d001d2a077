package cudaemu_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// bulkText has the kernel exchange of ptxText with bulk copies to and from the other's
// memory: data in slots 0 and 16.
const bulkText = `.version 8.0
.target sm_90
.address_size 64
.visible .entry exchange(.param .u64 theirs, .param .u64 mine, .param .u64 out, .param .u32 value, .param .u32 rounds)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<7>;
	.shared .align 16 .b8 sent[16], got[16];
	.shared .align 8 .b64 full;
	ld.param.u64 %rd1, [theirs];
	ld.param.u64 %rd2, [mine];
	ld.param.u64 %rd3, [out];
	ld.param.u32 %r1, [value];
	ld.param.u32 %r2, [rounds];
	mbarrier.init.shared.b64 [full], 1;
	mov.u32 %r3, 0;
	mov.u32 %r4, 0;
next:
	and.b32 %r8, %r3, 1;
	add.u32 %r3, %r3, 1;
	and.b32 %r5, %r3, 1;
	mul.wide.u32 %rd4, %r5, 16;
	add.s64 %rd5, %rd1, %rd4;
	mul.lo.u32 %r6, %r1, %r3;
	st.shared.v4.u32 [sent], {%r6, %r6, %r6, %r6};
	fence.proxy.async;
	cp.async.bulk.global.shared::cta.bulk_group [%rd5], [sent], 16;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
	fence.acq_rel.sys;
	st.relaxed.sys.global.u32 [%rd1+64], %r3;
wait:
	ld.relaxed.sys.global.u32 %r7, [%rd2+64];
	setp.lt.u32 %p1, %r7, %r3;
	@%p1 bra wait;
	fence.acq_rel.sys;
	add.s64 %rd6, %rd2, %rd4;
	mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [got], [%rd6], 16, [full];
loaded:
	mbarrier.try_wait.parity.shared.b64 %p1, [full], %r8;
	@!%p1 bra loaded;
	ld.shared.u32 %r7, [got+12];
	add.u32 %r4, %r4, %r7;
	setp.lt.u32 %p1, %r3, %r2;
	@%p1 bra next;
	st.global.u32 [%rd3], %r4;
	ret;
}
`

// TestBulkDevices is TestDevices with bulk copies, and with a fault of each kind.
func TestBulkDevices(t *testing.T) {
	for seed := range uint64(15) {
		e, got := exchange(t, seed, bulkText)
		require.Equal(t, [2]uint32{110, 55}, got, "seed %d", seed)
		e.clean()
		for _, c := range []struct {
			from, to string
			kind     weakmem.FaultKind
		}{
			{"fence.acq_rel.sys;\n\tst.relaxed", "fence.acq_rel.gpu;\n\tst.relaxed", weakmem.Race},
			{"wait_group 0;", "wait_group.read 0;", weakmem.Race},
			{"fence.proxy.async;", "fence.mbarrier_init.release.cluster;", weakmem.NoProxyFence},
		} {
			require.Contains(t, bulkText, c.from)
			e, _ = exchange(t, seed, strings.Replace(bulkText, c.from, c.to, 1))
			require.NotZero(t, e.kinds()[c.kind], "seed %d, %s", seed, c.to)
		}
	}
}
