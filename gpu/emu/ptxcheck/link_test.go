package ptxcheck

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// line is a kernel. GPU 0 stores a line of 128 bytes, 16 by each of 8 threads; the last word is a flag. GPU 1 loads the
// line until the flag is set. No fence is needed where lines are carried whole.
const line = `.version 7.0
.target sm_70
.address_size 64
.visible .entry send(.param .u64 to)
{
	.reg .b32 %t;
	.reg .b64 %a, %v<2>;
	ld.param.u64 %a, [to];
	mov.u32 %t, %tid.x;
	mad.wide.u32 %a, %t, 16, %a;
	mov.u64 %v0, 5;
	mov.u64 %v1, 7;
	st.volatile.global.v2.u64 [%a], {%v0, %v1};
	ret;
}
.visible .entry receive(.param .u64 from, .param .u64 out)
{
	.reg .pred %mine, %late;
	.reg .b32 %t;
	.reg .b64 %a<2>, %v<2>;
	ld.param.u64 %a0, [from];
	ld.param.u64 %a1, [out];
	mov.u32 %t, %tid.x;
	mad.wide.u32 %a0, %t, 16, %a0;
	mad.wide.u32 %a1, %t, 8, %a1;
	setp.eq.u32 %mine, %t, 7;
again:
	ld.volatile.global.v2.u64 {%v0, %v1}, [%a0];
	setp.eq.and.u64 %late, %v1, 0, %mine;
	vote.sync.any.pred %late, %late, 255;
	@%late bra again;
	st.global.u64 [%a1], %v0;
	ret;
}
`

func TestLinesAreTornOverPCIe(t *testing.T) {
	c := Case{
		Name: "line.ptx", Text: []byte(line), GPUs: 2, Seeds: 200,
		Buffers: []string{"line=u64[16]:0", "out=u64[8]:0"},
		Launches: []Launch{
			{Kernel: "send", Block: [3]int{8}, Args: []string{"line@1"}, On: []int{0}},
			{Kernel: "receive", Block: [3]int{8}, Args: []string{"line", "out"}, On: []int{1}},
		},
		Wants: []string{"out@1=5"},
	}
	require.NoError(t, check(t, c).Err())
	c.Link = "pcie"
	r := check(t, c)
	require.Len(t, r.Findings, 1)
	require.Equal(t, WrongResult, r.Findings[0].Kind)
	require.Contains(t, r.Err().Error(), "is 0, want 5")
}
