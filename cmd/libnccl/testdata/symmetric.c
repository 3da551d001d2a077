// What kernels of a program do with windows and device communicators, as NCCL's headers compile it: they
// compute where a peer's memory is, write there, and wait in a barrier of all ranks.
//
//	symmetric threads N [VERSION]     a thread for each rank
//	symmetric group N [VERSION]       one thread for all, in groups
//	symmetric teams N [VERSION]       two threads with N/2 each
//	symmetric process RANK N FILE
//
// VERSION is of NCCL's headers with which the program pretends to be compiled, whose structs it fills and reads.
// The GPUs are emulated.
#include "memory.h"

enum { MOST = 4, BYTES = 9216, ROUNDS = 3, BARRIERS = 2, MOST_BYTES = 256 };

// Where a device communicator of a version has its fields, and its length.
typedef struct {
	unsigned version;
	int ranks, table, window, base, stride, barriers, bytes;
} layout;
static const layout layouts[] = {
    {22809, 0, 24, 32, 48, 64, 120, 200}, {22903, 0, 24, 32, 48, 64, 120, 200}, {22907, 0, 24, 32, 48, 64, 120, 224},
    {23007, 8, 32, 40, 56, 72, 128, 240}, {23102, 8, 32, 40, 48, 56, 80, 248},	{23206, 8, 32, 40, 48, 56, 80, 248},
};
static const layout *chosen = layouts;

static const char kernels_of[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    // reach: out[i] is where offset of rank i's part of the window is, for each of a block's threads.
    ".visible .entry reach(.param .u64 window, .param .u64 offset, .param .u64 out)\n{\n"
    "\t.reg .b64 %rd<9>;\n\t.reg .b32 %r<4>;\n"
    "\tld.param.u64 %rd1, [window];\n\tld.param.u64 %rd2, [offset];\n\tld.param.u64 %rd3, [out];\n"
    "\tld.global.u64 %rd4, [%rd1+8];\n\tld.global.u32 %r1, [%rd1+24];\n\tmov.u32 %r2, %tid.x;\n"
    "\tmul.lo.u32 %r3, %r1, %r2;\n\tcvt.u64.u32 %rd5, %r3;\n\tshl.b64 %rd5, %rd5, 32;\n"
    "\tadd.u64 %rd6, %rd4, %rd5;\n\tadd.u64 %rd6, %rd6, %rd2;\n"
    "\tmul.wide.u32 %rd7, %r2, 8;\n\tadd.u64 %rd8, %rd3, %rd7;\n\tst.global.u64 [%rd8], %rd6;\n\tret;\n}\n"
    // meet: each thread has one peer. It writes value to place rank of the peer's part of the window at offset, meets
    // the peer in barrier index, and copies what the peer wrote to out[peer].
    ".visible .entry meet(.param .align 8 .b8 comm[248], .param .u64 window, .param .u64 offset, .param .u32 index, .param .u32 value, .param .u64 out)\n{\n"
    "\t.reg .pred %p<4>;\n\t.reg .b64 %rd<40>;\n\t.reg .b32 %r<40>;\n"
    "\tld.param.u32 %r1, [comm+$a];\n" // lsaRank
    "\tld.param.u32 %r2, [comm+$b];\n" // lsaSize
    "\tmov.u32 %r3, %tid.x;\n\tsetp.le.u32 %p1, %r1, %r3;\n\tselp.u32 %r4, 1, 0, %p1;\n\tadd.u32 %r4, %r4, %r3;\n" // the peer
    "\tld.param.u64 %rd1, [window];\n\tld.param.u64 %rd2, [offset];\n"
    "\tld.global.u64 %rd3, [%rd1+8];\n\tld.global.u32 %r5, [%rd1+24];\n\tld.global.u32 %r6, [%rd1+16];\n"
    "\tadd.u64 %rd3, %rd3, %rd2;\n"
    "\tmul.lo.u32 %r7, %r4, %r5;\n\tcvt.u64.u32 %rd4, %r7;\n\tshl.b64 %rd4, %rd4, 32;\n\tadd.u64 %rd4, %rd3, %rd4;\n" // the peer's
    "\tmul.lo.u32 %r8, %r6, %r5;\n\tcvt.u64.u32 %rd5, %r8;\n\tshl.b64 %rd5, %rd5, 32;\n\tadd.u64 %rd5, %rd3, %rd5;\n" // this rank's
    "\tmul.wide.u32 %rd6, %r1, 4;\n\tadd.u64 %rd4, %rd4, %rd6;\n\tld.param.u32 %r9, [value];\n\tst.global.u32 [%rd4], %r9;\n"
    // The barrier's counts and boxes, at this rank and at the peer.
    "\tld.param.u64 %rd10, [comm+$c];\n\tld.param.u32 %r10, [comm+$d];\n" // lsaFlatBase and stride4G of the resource window
    "\tld.param.u32 %r11, [comm+$e];\n\tld.param.u32 %r12, [comm+$f];\n\tld.param.u32 %r13, [index];\n" // bufHandle, nBarriers
    "\tmul.wide.u32 %rd11, %r11, 128;\n\tadd.u64 %rd10, %rd10, %rd11;\n"
    "\tmul.lo.u32 %r14, %r1, %r10;\n\tcvt.u64.u32 %rd12, %r14;\n\tshl.b64 %rd12, %rd12, 32;\n\tadd.u64 %rd12, %rd10, %rd12;\n"
    "\tmul.lo.u32 %r15, %r4, %r10;\n\tcvt.u64.u32 %rd13, %r15;\n\tshl.b64 %rd13, %rd13, 32;\n\tadd.u64 %rd13, %rd10, %rd13;\n"
    "\tadd.u32 %r16, %r12, %r13;\n\tmul.wide.u32 %rd14, %r16, 4;\n\tadd.u64 %rd14, %rd12, %rd14;\n\tld.global.u32 %r17, [%rd14];\n\tadd.u32 %r17, %r17, 1;\n"
    "\tbar.sync 0;\n"
    "\tmul.lo.u32 %r18, %r12, 3;\n\tmad.lo.u32 %r18, %r13, %r2, %r18;\n"
    "\tadd.u32 %r19, %r18, %r1;\n\tmul.wide.u32 %rd15, %r19, 4;\n\tadd.u64 %rd15, %rd13, %rd15;\n\tst.release.sys.global.u32 [%rd15], %r17;\n"
    "\tadd.u32 %r20, %r18, %r4;\n\tmul.wide.u32 %rd16, %r20, 4;\n\tadd.u64 %rd16, %rd12, %rd16;\n"
    "again:\n\tld.acquire.sys.global.u32 %r21, [%rd16];\n\tsub.u32 %r21, %r21, %r17;\n\tsetp.gt.u32 %p2, %r21, 0x7fffffff;\n\t@%p2 bra again;\n"
    "\tbar.sync 0;\n\tsetp.eq.u32 %p3, %r3, 0;\n\t@%p3 st.global.u32 [%rd14], %r17;\n"
    "\tmul.wide.u32 %rd17, %r4, 4;\n\tadd.u64 %rd5, %rd5, %rd17;\n\tld.global.u32 %r22, [%rd5];\n"
    "\tld.param.u64 %rd18, [out];\n\tadd.u64 %rd18, %rd18, %rd17;\n\tst.global.u32 [%rd18], %r22;\n\tret;\n}\n";

typedef struct {
	int rank, size, here; // here is how many ranks its thread has, from this one on
	ncclUniqueId id;
	void *at;
} rank_t;

static function find(module m, const char *name)
{
	function f;
	CU(cuModuleGetFunction(&f, m, name));
	return f;
}

// load is the kernels as a program of the version has them.
static module load(void)
{
	static char text[2 * sizeof kernels_of];
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	const layout *l = chosen;
	int places[] = {l->ranks + 12, l->ranks + 16, l->base, l->stride, l->barriers, l->barriers + 4};
	module m;
	pthread_mutex_lock(&one);
	char *to = text;
	for (const char *from = kernels_of; *from; from++)
		if (*from == '$')
			to += sprintf(to, "%d", places[*++from - 'a']);
		else
			*to++ = *from;
	*to = 0;
	CU(cuModuleLoadData(&m, text));
	pthread_mutex_unlock(&one);
	return m;
}

// Requirements as a program of the version has them. Those of 2.28 begin with the lists.
typedef struct {
	struct {
		size_t size;
		unsigned magic, version;
	} begin;
	ncclDevCommRequirements_t first;
	struct {
		int gin, exclusive, depth, traffic, world, strong, stride, type, runtime, cft, cft_barriers;
	} later;
} requirements;

static requirements want(ncclDevResourceRequirements_t *list)
{
	requirements w = {.begin = {sizeof w, NCCL_API_MAGIC, chosen->version}, .first = {.resourceRequirementsList = list, .lsaBarrierCount = BARRIERS}};
	w.first.ginContextCount = 4, w.later.traffic = NCCL_CONFIG_UNDEF_INT, w.later.strong = 0x0101, w.later.stride = 1; // as the initializers have it
	if (chosen->version <= 22903)
		w.begin.size = 72;
	return w;
}
static ncclResult_t create(ncclComm_t comm, const requirements *w, unsigned char *dev)
{
	return ncclDevCommCreate(comm, chosen->version < 22900 ? &w->first : (const void *)w, (ncclDevComm_t *)dev);
}
static ncclResult_t destroy(ncclComm_t comm, const unsigned char *dev) { return ncclDevCommDestroy(comm, (const ncclDevComm_t *)dev); }

static uint32_t number(const unsigned char *dev, int at)
{
	uint32_t n;
	memcpy(&n, dev + at, sizeof n);
	return n;
}
static void *pointer(const unsigned char *dev, int at)
{
	void *p;
	memcpy(&p, dev + at, sizeof p);
	return p;
}

// examine looks at a device communicator that was made.
static void examine(const unsigned char *dev, const rank_t *r)
{
	const layout *l = chosen;
	int ranks[] = {number(dev, l->ranks), number(dev, l->ranks + 4), number(dev, l->ranks + 12), number(dev, l->ranks + 16)};
	CHECK(ranks[0] == r->rank && ranks[1] == r->size && ranks[2] == r->rank && ranks[3] == r->size);
	if (l->ranks)
		CHECK(number(dev, 0) == NCCL_API_MAGIC && number(dev, 4) == l->version);
	for (uint64_t x = 0, by = number(dev, l->ranks + 8); x < 100; x++) // how kernels divide
		CHECK((by ? x * by >> 32 : x) - x / r->size + 1 < 2);
	CHECK(number(dev, l->barriers + 4) == BARRIERS && pointer(dev, l->base) && number(dev, l->stride) && pointer(dev, l->table) && pointer(dev, l->window));
	for (int i = l->barriers + 16; i < l->bytes; i++) // no networks
		CHECK(dev[i] == 0);
	CHECK(dev[l->bytes] == 0xff && dev[MOST_BYTES - 1] == 0xff); // behind it
}

// addresses are those that a kernel finds of offset of a window of all ranks.
static void addresses(rank_t *r, context c, cudaStream_t s, function f, ncclWindow_t win, uint64_t offset, uint64_t *got)
{
	void *out = place(c, NULL, 8 * MOST);
	void *params[] = {&win, &offset, &out};
	CU(cuLaunchKernel(f, 1, 1, 1, r->size, 1, 1, 0, s, params, NULL));
	pull(c, got, out, 8 * r->size, s);
	unplace(c, out);
}

// refused is what there is not.
static void refused(ncclComm_t comm, const requirements *good, unsigned char *dev)
{
	requirements w = *good;
	w.first.lsaMultimem = 1;
	WRONG(create(comm, &w, dev), ncclInvalidArgument, "no multicast memory");
	w = *good, w.first.ginSignalCount = 1;
	WRONG(create(comm, &w, dev), ncclInvalidArgument, "ask for no GIN");
	if (chosen->version < 22907)
		return;
	w = *good, w.first.barrierCount = 1;
	WRONG(create(comm, &w, dev), ncclInvalidArgument, "barrierCount and railGinBarrierCount ask for GIN");
	w = *good, w.later.gin = 1;
	WRONG(create(comm, &w, dev), ncclInvalidArgument, "ask for no GIN");
	w = *good, w.later.cft = 1;
	WRONG(create(comm, &w, dev), ncclInvalidArgument, "no compute fabric");
	w = *good, w.later.runtime = 1;
	WRONG(create(comm, &w, dev), ncclInvalidArgument, "useRuntimeVersion");
}

// together has one thread do the calls of several ranks, in groups.
static void *together(void *arg)
{
	rank_t *r = arg;
	struct {
		context c;
		cudaStream_t s;
		ncclComm_t comm;
		ncclWindow_t win;
		void *at, *out;
		unsigned char dev[MOST_BYTES];
	} x[MOST];
	requirements wanted = want(NULL);
	unsigned got[MOST], index = 1, value;
	uint64_t offset = 64;
	OK(ncclGroupStart());
	for (int i = 0; i < r->here; i++) {
		x[i].c = use_device(device_of(r[i].rank)), x[i].s = new_stream(x[i].c);
		OK(ncclCommInitRank(&x[i].comm, r->size, r->id, r[i].rank));
	}
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	for (int i = 0; i < r->here; i++) {
		use_device(device_of(r[i].rank));
		OK(ncclMemAlloc(&x[i].at, BYTES));
		OK(ncclCommWindowRegister(x[i].comm, x[i].at, BYTES, &x[i].win, NCCL_WIN_COLL_SYMMETRIC));
	}
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	for (int i = 0; i < r->here; i++) {
		memset(x[i].dev, 0xff, sizeof x[i].dev);
		OK(create(x[i].comm, &wanted, x[i].dev));
	}
	memset(&wanted, 0xff, sizeof wanted); // the program's again
	OK(ncclGroupEnd());
	ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
	OK(ncclCommQueryProperties(x[0].comm, &properties));
	CHECK(properties.deviceApiSupport && properties.nLsaTeams == 1 && !properties.multimemSupport);
	for (int i = 0; i < r->here; i++) {
		examine(x[i].dev, &r[i]);
		x[i].out = place(use_device(device_of(r[i].rank)), NULL, 4 * MOST);
		void *params[] = {x[i].dev, &x[i].win, &offset, &index, &value, &x[i].out};
		value = 7000 + r[i].rank;
		CU(cuLaunchKernel(find(load(), "meet"), 1, 1, 1, r->size - 1, 1, 1, 0, x[i].s, params, NULL));
	}
	for (int i = 0; i < r->here; i++) {
		use_device(device_of(r[i].rank));
		pull(x[i].c, got, x[i].out, 4 * r->size, x[i].s);
		for (int peer = 0; peer < r->size; peer++)
			CHECK(peer == r[i].rank || got[peer] == 7000u + peer);
		unplace(x[i].c, x[i].out);
		OK(destroy(x[i].comm, x[i].dev));
		OK(ncclCommWindowDeregister(x[i].comm, x[i].win));
		OK(ncclMemFree(x[i].at));
	}
	for (int i = 0; i < r->here; i++)
		OK(ncclCommDestroy(x[i].comm));
	return NULL;
}

static void *rank_main(void *arg)
{
	rank_t *r = arg;
	context c = use_device(device_of(r->rank));
	cudaStream_t s = new_stream(c);
	ncclComm_t comm;
	ncclWindow_t win[2];
	module m;
	OK(ncclCommInitRank(&comm, r->size, r->id, r->rank));
	OK(ncclMemAlloc(&r->at, BYTES));
	OK(ncclCommWindowRegister(comm, r->at, BYTES, &win[0], NCCL_WIN_COLL_SYMMETRIC));
	m = load();

	// The record, and the addresses that kernels make of it.
	struct ncclWindow_vidmem record;
	pull(c, &record, win[0], sizeof record, s);
	CHECK(record.lsaRank == r->rank && record.worldRank == r->rank && record.stride4G > 0 && record.mcOffset4K == 0);
	uint64_t first[MOST], later[MOST];
	addresses(r, c, s, find(m, "reach"), win[0], 0, first);
	addresses(r, c, s, find(m, "reach"), win[0], 4096, later);
	CHECK(first[0] == (uint64_t)record.lsaFlatBase);
	for (int i = 0; i < r->size; i++)
		CHECK(later[i] - first[i] == 4096 && first[i] - first[0] == (uint64_t)i * record.stride4G << 32);
	int mark = r->rank + 40, seen;
	push(c, r->at, &mark, sizeof mark, s);
	pull(c, &seen, (void *)first[r->rank], sizeof seen, s); // this rank's own memory is there
	CHECK(seen == mark);

	// A second window does not move the first, and functions on the host know both.
	OK(ncclMemAlloc(&r->at, BYTES));
	OK(ncclCommWindowRegister(comm, r->at, BYTES, &win[1], NCCL_WIN_COLL_SYMMETRIC));
	void *at;
	OK(ncclWinGetUserPtr(comm, win[1], &at));
	CHECK(at == r->at && win[0] != win[1]);

	// Barriers, with room for the program beside them.
	ncclDevResourceHandle_t room = 0;
	ncclDevResourceRequirements_t buffer = {.bufferSize = 100, .bufferAlign = 512, .outBufferHandle = &room};
	requirements wanted = want(&buffer);
	unsigned char dev[MOST_BYTES];
	memset(dev, 0xff, sizeof dev);
	OK(create(comm, &wanted, dev));
	examine(dev, r);
	CHECK(room % 4 == 0 && room > number(dev, chosen->barriers));
	pull(c, &record, pointer(dev, chosen->window), sizeof record, s);
	CHECK(record.lsaFlatBase == pointer(dev, chosen->base) && record.stride4G == number(dev, chosen->stride));
	uint64_t table[3 * 32 + 1]; // of windows, by which kernels look one up
	pull(c, table, pointer(dev, chosen->table), sizeof table, s);
	CHECK(table[2] == (uint64_t)win[0] && table[3] == (uint64_t)r->at && table[4] == BYTES && table[5] == (uint64_t)win[1] && !table[6] && !table[96]);
	void *out = place(c, NULL, 4 * MOST);
	for (int round = 0; r->size > 1 && round < ROUNDS; round++) {
		uint64_t offset = 64 * round;
		unsigned index = 1, value = 1000 * round + r->rank, got[MOST];
		void *params[] = {dev, &win[1], &offset, &index, &value, &out};
		CU(cuLaunchKernel(find(m, "meet"), 1, 1, 1, r->size - 1, 1, 1, 0, s, params, NULL));
		pull(c, got, out, 4 * r->size, s);
		for (int i = 0; i < r->size; i++)
			CHECK(i == r->rank || got[i] == 1000u * round + i);
	}
	unplace(c, out);
	OK(destroy(comm, dev));
	WRONG(destroy(comm, dev), ncclInvalidArgument, "no window");
	refused(comm, &wanted, dev);
	OK(ncclCommWindowDeregister(comm, win[0]));
	WRONG(ncclCommWindowDeregister(comm, win[0]), ncclInvalidArgument, "no window");
	if (r->size > 1) { // memory that cannot be mapped has no addresses, and no effect on what is on the host
		void *plain = place(c, NULL, 8192);
		ncclWindow_t none;
		at = (void *)(((uintptr_t)plain + 4095) / 4096 * 4096);
		OK(ncclCommWindowRegister(comm, at, 64, &none, NCCL_WIN_COLL_SYMMETRIC));
		void *user;
		OK(ncclWinGetUserPtr(comm, none, &user));
		pull(c, &record, none, sizeof record, s);
		CHECK(user == at && !record.lsaFlatBase && record.lsaRank == r->rank);
	}
	OK(ncclCommDestroy(comm));
	return NULL;
}

int main(int argc, char **argv)
{
	static rank_t ranks[MOST];
	if (argc == 5 && strcmp(argv[1], "process") == 0) {
		rank_t *r = &ranks[0];
		r->rank = atoi(argv[2]), r->size = atoi(argv[3]), r->id = meet(argv[4], r->rank);
		rank_main(r);
	} else {
		CHECK(argc == 3 || argc == 4);
		int n = atoi(argv[2]), here = !strcmp(argv[1], "group") ? n : !strcmp(argv[1], "teams") ? n / 2 : 1;
		pthread_t threads[MOST];
		ncclUniqueId id;
		while (argc == 4 && chosen->version != strtoul(argv[3], NULL, 10))
			CHECK(++chosen < layouts + sizeof layouts / sizeof *layouts);
		OK(ncclGetUniqueId(&id));
		for (int i = 0; i < n; i++)
			ranks[i] = (rank_t){i, n, here, id, NULL};
		for (int i = 0; i < n; i += here)
			CHECK(pthread_create(&threads[i], NULL, strcmp(argv[1], "threads") ? together : rank_main, &ranks[i]) == 0);
		for (int i = 0; i < n; i += here)
			pthread_join(threads[i], NULL);
	}
	puts("ok");
	return 0;
}
