package simt_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

const bulkLoad = `
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 1;
fence.proxy.async.shared::cta;
READY:
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2], 256, [bar];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r2, [%r1];
st.global.u32 [%rd1], %r2;
`

func TestBulkLoad(t *testing.T) {
	in := sequence(64, 3)
	const copied = "the asynchronous copy's store of 256 bytes"
	find(t, bulkLoad, run{threads: 64, words: [][]uint32{make([]uint32, 64), in, {0}}}, in, []planted{
		{"barrier without a fence", []edit{{"fence.proxy.async.shared::cta;", ""}}, kinds(noFence), "the store of 8 bytes"},
		{"data not waited for", []edit{{"@!%p1 bra WAIT;", ""}}, kinds(raced, unset), copied},
		{"other phase", []edit{{"[bar], 0;", "[bar], 1;"}}, kinds(raced, unset), copied},
		{"more bytes expected", []edit{{"_, [bar], 256", "_, [bar], 512"}}, kinds(stuck),
			"phase 0 lacks 0 of 1 arrivals and 256 bytes"},
		{"fewer bytes expected", []edit{{"_, [bar], 256", "_, [bar], 128"}}, kinds(stuck),
			"phase 0 lacks 0 of 1 arrivals and -128 bytes"},
		{"no bytes expected", []edit{{"arrive.expect_tx.shared.b64 _, [bar], 256", "arrive.shared.b64 _, [bar]"}},
			kinds(raced, unset), copied},
		{"too many arrivals expected", []edit{{"[bar], 1;", "[bar], 2;"}}, kinds(stuck),
			"phase 0 lacks 1 of 2 arrivals and 0 bytes"},
		{"size", []edit{{"[%rd2], 256", "[%rd2], 248"}}, kinds(bad), "multiple of 16"},
		{"source misaligned", []edit{{"[%rd2], 256", "[%rd2+8], 256"}}, kinds(weakmem.Misaligned), "multiple of its unit"},
		{"destination misaligned", []edit{{"[tile], [%rd2]", "[tile+4], [%rd2]"}}, kinds(weakmem.Misaligned),
			"multiple of its unit"},
		{"beyond the source", []edit{{"[%rd2], 256", "[%rd2], 512"}}, kinds(weakmem.OutOfBounds), "load of 512 bytes"},
		{"beyond shared memory", []edit{{"[tile], [%rd2]", "[tile+2048], [%rd2]"}}, kinds(weakmem.OutOfBounds),
			"store of 256 bytes"},
		{"nobody waits", []edit{{"@!%p1 bra WAIT;", "ret;"}}, kinds(bad), "no longer uses its shared memory"},
		{"source overwritten", []edit{{"WAIT:", "@%p0 st.global.u32 [%rd2], 1; WAIT:"}}, kinds(raced),
			"the asynchronous copy's load of 256 bytes"},
		{"barrier ended too early", []edit{{"WAIT:", "@%p0 mbarrier.inval.shared.b64 [bar]; WAIT:"}}, kinds(raced),
			"8 bytes"},
	})
	for _, fence := range []string{"fence.proxy.async;", "fence.mbarrier_init.release.cluster;"} {
		find(t, edit{"fence.proxy.async.shared::cta;", fence}.of(t, bulkLoad),
			run{threads: 64, words: [][]uint32{make([]uint32, 64), in, {0}}}, in, nil)
	}
}

// bulkStore stores a tile that all threads wrote, then each writes it again and the tile
// goes to the next 256 bytes.
const bulkStore = `
mad.lo.u32 %r2, %r0, 7, 1;
st.shared.u32 [%r1], %r2;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 bra FIRST;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
FIRST:
bar.sync 0;
add.u32 %r2, %r2, 1;
st.shared.u32 [%r1], %r2;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 bra SECOND;
cp.async.bulk.global.shared::cta.bulk_group [%rd0+256], [tile], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
SECOND:
bar.sync 0;
ld.global.u32 %r3, [%rd1];
add.u32 %r3, %r3, %r2;
st.global.u32 [%rd1+512], %r3;
`

func TestBulkStore(t *testing.T) {
	want := make([]uint32, 3*64)
	for i := range uint32(64) {
		want[i], want[64+i], want[128+i] = 7*i+1, 7*i+2, 14*i+3
	}
	r := run{threads: 64, words: [][]uint32{make([]uint32, 3*64), {0}, {0}}}
	second := "add.u32 %r2, %r2, 1;\nst.shared.u32 [%r1], %r2;\nfence.proxy.async.shared::cta;"
	find(t, bulkStore, r, want, []planted{
		{"first without a fence", []edit{{"fence.proxy.async.shared::cta;", ""}}, kinds(noFence), "the store of 4 bytes"},
		{"second without a fence", []edit{{second, "add.u32 %r2, %r2, 1; st.shared.u32 [%r1], %r2;"}}, kinds(noFence),
			"the store of 4 bytes"},
		{"fence of the other memory", []edit{{"fence.proxy.async.shared::cta;", "fence.proxy.async.global;"}}, kinds(noFence),
			"the store of 4 bytes"},
		{"fence too early", []edit{{second, "fence.proxy.async.shared::cta; add.u32 %r2, %r2, 1; st.shared.u32 [%r1], %r2;"}},
			kinds(noFence), "the store of 4 bytes"},
		{"source overwritten", []edit{{"cp.async.bulk.wait_group.read 0;", ""}}, kinds(raced),
			"the asynchronous copy's load of 256 bytes"},
		{"waits for too few", []edit{{"cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;"}}, kinds(raced),
			"the asynchronous copy's load of 256 bytes"},
		{"only read", []edit{{"cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"}}, kinds(raced),
			"the asynchronous copy's store of 256 bytes"},
		{"not committed", []edit{{"[tile], 256;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
			"[tile], 256;\ncp.async.bulk.wait_group 0;"}}, kinds(bad), "no longer uses its shared memory"},
		{"nothing waits", []edit{{"cp.async.bulk.wait_group 0;\nSECOND:\nbar.sync 0;", "SECOND: ret;"}}, kinds(bad),
			"no longer uses its shared memory"},
	})
	some := edit{"mad.lo.u32 %r2,", "setp.ge.u32 %p5, %r0, 64; @%p5 exit; mad.lo.u32 %r2,"}.of(t,
		edit{"bar.sync 0;", "bar.sync 1, 64;"}.all(t, bulkStore))
	more := r
	more.threads = 96
	find(t, some, more, want, nil) // a barrier of some warps
	onlyRead := edit{"cp.async.bulk.wait_group 0;\nSECOND:\nbar.sync 0;", "cp.async.bulk.wait_group.read 0;\nSECOND: ret;"}
	find(t, onlyRead.of(t, bulkStore), r, want[:128], nil) // the end of the kernel finishes the stores
}

// publish has block 0 store a tile and raise a flag for block 1.
const publish = `
mov.u32 %r5, %ctaid.x;
setp.ne.u32 %p3, %r5, 0;
@%p3 bra READER;
st.shared.u32 [%r1], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 exit;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
st.release.gpu.global.u32 [%rd3], 1;
exit;
READER:
ld.acquire.gpu.global.u32 %r2, [%rd3];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra READER;
mad.wide.u32 %rd4, %r0, 4, %rd2;
ld.global.u32 %r3, [%rd4];
st.global.u32 [%rd1], %r3;
`

func TestBulkStorePublished(t *testing.T) {
	const copied = "the asynchronous copy's store of 256 bytes"
	find(t, publish, run{threads: 64, blocks: 2, words: [][]uint32{make([]uint32, 64), make([]uint32, 64), {0}}},
		sequence(64, 1), []planted{
			{"not waited for", []edit{{"cp.async.bulk.wait_group 0;", ""}}, kinds(raced, bad), copied},
			{"only read", []edit{{"cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"}}, kinds(raced), copied},
			{"released nothing", []edit{{"st.release.gpu", "st.relaxed.gpu"}}, kinds(raced), copied},
			{"acquired nothing", []edit{{"ld.acquire.gpu", "ld.relaxed.gpu"}}, kinds(raced), copied},
			{"released to its block", []edit{{"st.release.gpu", "st.release.cta"}}, kinds(raced), ""},
		})
}

// Hardware has no reports, only wrong data. It comes here too, if a flag does not wait for the copy or releases
// nothing.
func TestBulkDataComesLate(t *testing.T) {
	for _, e := range []edit{{"cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"},
		{"st.release.sys", "st.relaxed.sys"}, {"", ""}} {
		text := edit{"st.release.gpu", "st.release.sys"}.of(t, edit{"ld.acquire.gpu", "ld.acquire.sys"}.of(t, publish))
		text = asynchronous(e.of(t, edit{"setp.ne.u32 %p3, %r5, 0;", "ld.param.u32 %r5, [n]; setp.ne.u32 %p3, %r5, 0;"}.of(t,
			text)))
		text = edit{".param .u64 flag", ".param .u64 flag, .param .u32 n"}.of(t, text)
		late := 0
		for seed := range uint64(asyncSeeds) {
			m := boot(t, text, options{seed: seed, goOn: true, devices: []simt.Shape{small, small}})
			out, data, flag := m.words(make([]uint32, 64)...), m.words(make([]uint32, 64)...), m.words(0)
			writer, reader := m.grid("k", 1, 64, out, data, flag, 0), m.grid("k", 1, 64, out, data, flag, 1)
			reader.Device = 1
			require.NoError(t, m.world.Start(writer))
			require.NoError(t, m.world.Start(reader))
			for m.world.Step(1000) > 0 {
			}
			if !slices.Equal(sequence(64, 1), m.read(out, 64)) {
				late++
			}
		}
		t.Logf("%d of %d seeds", late, asyncSeeds)
		require.Equal(t, e.from != "", late > 0, e.from)
	}
}
