package meter

import (
	"fmt"
	"strings"
)

const (
	threads = 256 // of a block of fill and compare
	foundAt = 64  // where the records begin in the memory of a comparison
	record  = 24  // bytes: address, what should be there, what is
)

// text is the kernels in PTX.
//
//   - fill writes a pattern into n vectors of 16 bytes at p.
//   - compare reads them: it counts the words of 8 bytes that differ at found, and keeps the first most of them.
//   - chase follows a chain of addresses through memory, one load after the other.
//   - store writes 1, 2, … rounds into every word of 4 lines of 128 bytes, each with one instruction of 8 threads.
//   - look reads those lines over and over, until they hold last. A word that is older than the last word of its line
//     has been torn from it. It counts at out what was torn, and how many values it saw, and keeps one example.
func text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	// value has what the pattern puts at an address.
	value := func(v, at string) {
		line(`	sub.u64 %%a, %[2]s, %%base;
	shr.u64 %%b, %%a, 3;
	shr.u64 %%c, %%a, 9;
	add.u64 %%b, %%b, %%c;
	cvt.u32.u64 %%s, %%b;
	and.b32 %%s, %%s, 63;
	mov.u64 %%b, 1;
	shl.b64 %%b, %%b, %%s;
	selp.b64 %[1]s, %%a, 0, %%isaddress;
	selp.b64 %[1]s, %%b, %[1]s, %%isbit;
	xor.b64 %[1]s, %[1]s, %%flip;`, v, at)
	}
	// each begins a kernel that visits every vector, at %p.
	each := func(name, more string) {
		line(`.visible .entry %s(.param .u64 p, .param .u64 n, .param .u64 base, .param .u64 flip, .param .u64 found, .param .u32 kind, .param .u32 most)
.maxntid %d, 1, 1
{
	.reg .pred %%done, %%isaddress, %%isbit, %%wrong, %%room;
	.reg .b32 %%kind, %%s, %%t, %%u, %%most, %%at;
	.reg .b64 %%p, %%n, %%base, %%flip, %%a, %%b, %%c, %%i, %%step, %%v, %%w, %%x, %%y, %%q, %%found, %%r;
	ld.param.u64 %%p, [p];
	ld.param.u64 %%n, [n];
	ld.param.u64 %%base, [base];
	ld.param.u64 %%flip, [flip];
	ld.param.u32 %%kind, [kind];
%s	setp.eq.u32 %%isaddress, %%kind, 0;
	setp.eq.u32 %%isbit, %%kind, 1;
	cvta.to.global.u64 %%p, %%p;
	mov.u32 %%s, %%ctaid.x;
	mov.u32 %%t, %%ntid.x;
	mov.u32 %%u, %%tid.x;
	mul.wide.u32 %%i, %%s, %%t;
	cvt.u64.u32 %%a, %%u;
	add.u64 %%i, %%i, %%a;
	mov.u32 %%s, %%nctaid.x;
	mul.wide.u32 %%step, %%s, %%t;
	shl.b64 %%a, %%i, 4;
	add.u64 %%p, %%p, %%a;
again:
	setp.ge.u64 %%done, %%i, %%n;
	@%%done bra end;
	add.u64 %%q, %%p, 8;`, name, threads, more)
		value("%v", "%p")
		value("%w", "%q")
	}
	next := `	add.u64 %i, %i, %step;
	shl.b64 %a, %step, 4;
	add.u64 %p, %p, %a;
	bra again;
end:
	ret;
}`
	b.WriteString(".version 7.0\n.target sm_70\n.address_size 64\n")
	each("fill", "")
	line("	st.global.v2.u64 [%%p], {%%v, %%w};\n%s", next)
	each("compare", "	ld.param.u64 %found, [found];\n	ld.param.u32 %most, [most];\n	cvta.to.global.u64 %found, %found;\n")
	line("	ld.volatile.global.v2.u64 {%%x, %%y}, [%%p];")
	for i, word := range [][3]string{{"%p", "%v", "%x"}, {"%q", "%w", "%y"}} {
		line(`	setp.ne.u64 %%wrong, %[3]s, %[4]s;
	@!%%wrong bra right%[1]d;
	atom.global.add.u32 %%at, [%%found], 1;
	setp.lt.u32 %%room, %%at, %%most;
	@!%%room bra right%[1]d;
	mad.wide.u32 %%r, %%at, %[5]d, %%found;
	st.global.u64 [%%r+%[6]d], %[2]s;
	st.global.u64 [%%r+%[7]d], %[3]s;
	st.global.u64 [%%r+%[8]d], %[4]s;
right%[1]d:`, i, word[0], word[1], word[2], record, foundAt, foundAt+8, foundAt+16)
	}
	line("%s", next)
	line(`.visible .entry chase(.param .u64 p, .param .u64 hops, .param .u64 out)
{
	.reg .pred %%more;
	.reg .b64 %%p, %%hops, %%out;
	ld.param.u64 %%p, [p];
	ld.param.u64 %%hops, [hops];
	ld.param.u64 %%out, [out];
	cvta.to.global.u64 %%out, %%out;
again:
	ld.volatile.global.u64 %%p, [%%p];
	sub.u64 %%hops, %%hops, 1;
	setp.ne.u64 %%more, %%hops, 0;
	@%%more bra again;
	st.global.u64 [%%out], %%p;
	ret;
}
.visible .entry store(.param .u64 p, .param .u32 rounds)
.maxntid 32, 1, 1
{
	.reg .pred %%more;
	.reg .b32 %%t, %%r, %%rounds;
	.reg .b64 %%p, %%v;
	ld.param.u64 %%p, [p];
	ld.param.u32 %%rounds, [rounds];
	cvta.to.global.u64 %%p, %%p;
	mov.u32 %%t, %%tid.x;
	mad.wide.u32 %%p, %%t, 16, %%p;
	mov.u32 %%r, 1;
again:
	cvt.u64.u32 %%v, %%r;
	st.volatile.global.v2.u64 [%%p], {%%v, %%v};
	add.u32 %%r, %%r, 1;
	setp.le.u32 %%more, %%r, %%rounds;
	@%%more bra again;
	ret;
}
.visible .entry look(.param .u64 p, .param .u64 out, .param .u32 last, .param .u32 looks)
.maxntid 32, 1, 1
{
	.reg .pred %%p0, %%torn, %%new, %%ended, %%end;
	.reg .b32 %%t, %%last, %%looks, %%x, %%y, %%flag, %%was, %%count, %%seen, %%old, %%least;
	.reg .b64 %%p, %%out, %%v, %%w;
	ld.param.u64 %%p, [p];
	ld.param.u64 %%out, [out];
	ld.param.u32 %%last, [last];
	ld.param.u32 %%looks, [looks];
	cvta.to.global.u64 %%p, %%p;
	cvta.to.global.u64 %%out, %%out;
	mov.u32 %%t, %%tid.x;
	mad.wide.u32 %%p, %%t, 16, %%p;
	or.b32 %%t, %%t, 7;
	mov.u32 %%was, 0;
	mov.u32 %%count, 0;
	mov.u32 %%seen, 0;
again:
	ld.volatile.global.v2.u64 {%%v, %%w}, [%%p];
	cvt.u32.u64 %%x, %%v;
	cvt.u32.u64 %%y, %%w;
	shfl.sync.idx.b32 %%flag, %%y, %%t, 0x1f, 0xffffffff;
	min.u32 %%least, %%x, %%y;
	setp.lt.u32 %%torn, %%least, %%flag;
	@%%torn add.u32 %%count, %%count, 1;
	@%%torn st.volatile.global.v2.u32 [%%out+8], {%%flag, %%least};
	setp.ne.u32 %%new, %%flag, %%was;
	@%%new add.u32 %%seen, %%seen, 1;
	mov.u32 %%was, %%flag;
	setp.ge.u32 %%ended, %%flag, %%last;
	vote.sync.all.pred %%end, %%ended, 0xffffffff;
	@%%end bra done;
	sub.u32 %%looks, %%looks, 1;
	setp.ne.u32 %%p0, %%looks, 0;
	@%%p0 bra again;
done:
	red.global.add.u32 [%%out], %%count;
	red.global.max.u32 [%%out+4], %%seen;
	ret;
}`)
	return b.String()
}
