// Results of calls with odd arguments, on host memory: each is what the checks of NCCL 2.28 give, or 2.29's for
// functions that it has first. Each error has a sentence that does not begin twice.
#include <limits.h>
#include <stdint.h>
#include "check.h"

static int wrong;

// is compares the result of a call.
static void is(int line, const char *call, int result, int want)
{
	const char *text = result && result != ncclInProgress ? ncclGetLastError(NULL) : "no error";
	const char *rest = strstr(text, ": ");
	int twice = rest && !strncmp(rest + 2, text, (size_t)(rest - text) + 2);
	if (result != want || !*text || twice) {
		fprintf(stderr, "line %d: %s: result %d, want %d: %s\n", line, call, result, want, text);
		wrong++;
	}
}
#define IS(want, call) is(__LINE__, #call, (int)(call), want)

static ncclComm_t made(void)
{
	ncclComm_t comm;
	OK(ncclCommInitAll(&comm, 1, NULL));
	return comm;
}

static void makers(void)
{
	ncclUniqueId id, ids[2], none = {{0}};
	ncclComm_t c = NULL, pair[2];
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	int v;
	IS(4, ncclGetVersion(NULL));
	IS(0, ncclGetVersion(&v));
	IS(4, ncclGetUniqueId(NULL));
	IS(0, ncclGetUniqueId(&id));
	ids[0] = ids[1] = id;
	IS(4, ncclCommInitRank(NULL, 1, id, 0));
	IS(4, ncclCommInitRank(&c, 0, id, 0));
	IS(4, ncclCommInitRank(&c, -1, id, 0));
	IS(4, ncclCommInitRank(&c, INT_MIN, id, INT_MIN));
	IS(4, ncclCommInitRank(&c, 2, id, 2));
	IS(4, ncclCommInitRank(&c, 2, id, -1));
	IS(4, ncclCommInitRank(&c, 1, none, 0));
	IS(4, ncclCommInitRankConfig(NULL, 1, id, 0, NULL));
	IS(4, ncclCommInitRankConfig(&c, 1, id, 1, &config));
	IS(4, ncclCommInitRankScalable(NULL, 1, 0, 1, ids, NULL));
	IS(4, ncclCommInitRankScalable(&c, 1, 0, 0, ids, NULL));
	IS(4, ncclCommInitRankScalable(&c, 1, 0, -3, ids, NULL));
	IS(4, ncclCommInitRankScalable(&c, 1, 0, 2, ids, NULL));
	IS(4, ncclCommInitRankScalable(&c, 1, 0, INT_MAX, ids, NULL));
	IS(4, ncclCommInitRankScalable(&c, 1, 0, 1, NULL, NULL));
	config.minCTAs = 3;
	IS(4, ncclCommInitRankConfig(&c, 1, id, 0, &config));
	config.maxCTAs = 2;
	IS(4, ncclCommInitRankConfig(&c, 1, id, 0, &config));
	config.version = 21699; // has neither
	IS(0, ncclCommInitRankConfig(&c, 1, id, 0, &config));
	IS(0, ncclCommDestroy(c));
	IS(4, ncclCommInitAll(NULL, 1, NULL));
	IS(4, ncclCommInitAll(pair, -1, NULL));
	IS(4, ncclCommInitAll(pair, INT_MIN, NULL));
	IS(4, ncclCommInitAll(pair, INT_MAX, NULL));
	IS(0, ncclCommFinalize(NULL));
	IS(0, ncclCommDestroy(NULL));
	IS(0, ncclCommAbort(NULL));
	IS(0, ncclCommRevoke(NULL, 9));
}

// questions are those of a communicator c; other is none.
static void questions(ncclComm_t c, ncclComm_t other)
{
	int x;
	ncclResult_t r;
	IS(4, ncclCommCount(other, &x));
	IS(4, ncclCommUserRank(other, &x));
	IS(4, ncclCommCuDevice(other, &x));
	IS(4, ncclCommGetAsyncError(other, &r));
	IS(4, ncclCommCount(c, NULL));
	IS(4, ncclCommUserRank(c, NULL));
	IS(4, ncclCommCuDevice(c, NULL));
	IS(4, ncclCommGetAsyncError(c, NULL));
	IS(0, ncclCommGetAsyncError(c, &r));
	CHECK(r == ncclSuccess);
}

static void collectives(ncclComm_t c, ncclComm_t other)
{
	static float a[8], b[8];
	cudaStream_t s = NULL;
	static const int types[] = {-1, 12, 99, INT_MIN, INT_MAX}, roots[] = {-1, 1, INT_MIN, INT_MAX};
	for (int i = 0; i < 5; i++) {
		ncclDataType_t t = (ncclDataType_t)types[i];
		for (size_t n = 0; n < 5; n += 4) { // empty calls are checked too
			IS(4, ncclAllReduce(a, b, n, t, ncclSum, c, s));
			IS(4, ncclReduce(a, b, n, t, ncclSum, 0, c, s));
			IS(4, ncclBroadcast(a, b, n, t, 0, c, s));
			IS(4, ncclBcast(a, n, t, 0, c, s));
			IS(4, ncclAllGather(a, b, n, t, c, s));
			IS(4, ncclReduceScatter(a, b, n, t, ncclSum, c, s));
			IS(4, ncclAlltoAll(a, b, n, t, c, s));
			IS(4, ncclGather(a, b, n, t, 0, c, s));
			IS(4, ncclScatter(a, b, n, t, 0, c, s));
			IS(4, ncclSend(a, n, t, 0, c, s));
			IS(4, ncclRecv(b, n, t, 0, c, s));
		}
	}
	for (int i = 0; i < 4; i++)
		for (size_t n = 0; n < 5; n += 4) {
			IS(4, ncclReduce(a, b, n, ncclFloat, ncclSum, roots[i], c, s));
			IS(4, ncclBroadcast(a, b, n, ncclFloat, roots[i], c, s));
			IS(4, ncclBcast(a, n, ncclFloat, roots[i], c, s));
			IS(4, ncclGather(a, b, n, ncclFloat, roots[i], c, s));
			IS(4, ncclScatter(a, b, n, ncclFloat, roots[i], c, s));
			IS(4, ncclSend(a, n, ncclFloat, roots[i], c, s));
			IS(4, ncclRecv(b, n, ncclFloat, roots[i], c, s));
		}
	static const int ops[] = {-1, 5, 77, INT_MIN, INT_MAX};
	for (int i = 0; i < 5; i++) {
		IS(4, ncclAllReduce(a, b, 4, ncclFloat, (ncclRedOp_t)ops[i], c, s));
		IS(4, ncclReduce(a, b, 4, ncclFloat, (ncclRedOp_t)ops[i], 0, c, s));
		IS(4, ncclReduceScatter(a, b, 4, ncclFloat, (ncclRedOp_t)ops[i], c, s));
		IS(4, ncclAllReduce(a, b, 0, ncclFloat, (ncclRedOp_t)ops[i], c, s));
		IS(4, ncclRedOpDestroy((ncclRedOp_t)ops[i], c));
	}
	IS(4, ncclAllReduce(a, b, 4, ncclFloat, ncclSum, other, s));
	IS(4, ncclReduce(a, b, 4, ncclFloat, ncclSum, 0, other, s));
	IS(4, ncclBroadcast(a, b, 4, ncclFloat, 0, other, s));
	IS(4, ncclAllGather(a, b, 4, ncclFloat, other, s));
	IS(4, ncclReduceScatter(a, b, 4, ncclFloat, ncclSum, other, s));
	IS(4, ncclAlltoAll(a, b, 4, ncclFloat, other, s));
	IS(4, ncclGather(a, b, 4, ncclFloat, 0, other, s));
	IS(4, ncclScatter(a, b, 4, ncclFloat, 0, other, s));
	IS(4, ncclSend(a, 4, ncclFloat, 0, other, s));
	IS(4, ncclRecv(b, 4, ncclFloat, 0, other, s));
	IS(4, ncclAllReduce(a, b, SIZE_MAX, ncclFloat, ncclSum, c, s));
	IS(4, ncclAllGather(a, b, SIZE_MAX / 4, ncclFloat, c, s));
	IS(4, ncclAllReduce(NULL, b, 4, ncclFloat, ncclSum, c, s));
	IS(4, ncclAllReduce(a, NULL, 4, ncclFloat, ncclSum, c, s));
	IS(0, ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, c, s));
	IS(0, ncclAllGather(NULL, NULL, 0, ncclFloat, c, s));
}

static void operators(ncclComm_t c, ncclComm_t other)
{
	static float a[8], b[8], two = 2;
	ncclRedOp_t op;
	IS(4, ncclRedOpCreatePreMulSum(NULL, &two, ncclFloat, ncclScalarHostImmediate, c));
	IS(4, ncclRedOpCreatePreMulSum(&op, NULL, ncclFloat, ncclScalarHostImmediate, c));
	IS(4, ncclRedOpCreatePreMulSum(&op, &two, (ncclDataType_t)50, ncclScalarHostImmediate, c));
	IS(4, ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, other));
	IS(0, ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, c));
	IS(4, ncclAllReduce(a, b, 4, ncclDouble, op, c, NULL));
	IS(4, ncclRedOpDestroy(op, other));
	IS(0, ncclRedOpDestroy(op, c));
	IS(4, ncclRedOpDestroy(op, c));
	IS(4, ncclAllReduce(a, b, 4, ncclFloat, op, c, NULL));
	for (int i = 0; i < 5; i++)
		IS(4, ncclRedOpDestroy((ncclRedOp_t)i, c));
}

static void groups(ncclComm_t c)
{
	static float a[8], b[8];
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER, bad = {0};
	IS(5, ncclGroupEnd());
	IS(5, ncclGroupSimulateEnd(&info));
	IS(5, ncclGroupSimulateEnd(NULL));
	for (int i = 0; i < 3; i++)
		IS(0, ncclGroupStart());
	for (int i = 0; i < 3; i++)
		IS(0, ncclGroupEnd());
	IS(5, ncclGroupEnd());
	IS(0, ncclGroupStart());
	IS(4, ncclGroupSimulateEnd(&bad));
	IS(5, ncclGroupEnd());
	IS(0, ncclGroupStart());
	IS(0, ncclAllReduce(a, b, 4, ncclFloat, ncclSum, c, NULL));
	IS(4, ncclAllReduce(a, b, 4, ncclFloat, (ncclRedOp_t)77, c, NULL));
	IS(4, ncclGroupEnd());
	IS(5, ncclGroupEnd());
	IS(0, ncclGroupStart());
	IS(4, ncclReduce(a, b, 0, ncclFloat, ncclSum, 3, c, NULL));
	IS(4, ncclGroupSimulateEnd(&info));
	IS(0, ncclAllReduce(a, b, 4, ncclFloat, ncclSum, c, NULL));
}

static void memory(ncclComm_t c, ncclComm_t other)
{
	void *m, *h;
	int x;
	ncclWindow_t w;
	IS(4, ncclMemAlloc(NULL, 64));
	IS(0, ncclMemAlloc(&m, 0));
	IS(0, ncclMemFree(NULL));
	IS(0, ncclMemAlloc(&m, 5));
	IS(1, ncclMemFree(&x));
	IS(1, ncclMemFree((char *)m + 1));
	IS(4, ncclCommRegister(other, m, 5, &h));
	IS(4, ncclCommRegister(c, m, 5, NULL));
	IS(0, ncclCommRegister(c, m, 5, &h));
	IS(4, ncclCommDeregister(other, h));
	IS(0, ncclCommDeregister(c, h));
	IS(0, ncclCommDeregister(c, NULL));
	IS(4, ncclCommDeregister(NULL, NULL));
	IS(0, ncclCommRegister(c, NULL, 0, &h));
	IS(0, ncclCommDeregister(c, h));
	IS(4, ncclCommWindowRegister(other, m, 4096, &w, 0));
	IS(0, ncclCommWindowRegister(NULL, NULL, 4096, &w, 0));
	IS(0, ncclCommWindowRegister(c, m, 0, &w, 0));
	IS(4, ncclCommWindowRegister(c, (char *)m + 1, 4, &w, 0));
	IS(0, ncclCommWindowDeregister(NULL, NULL));
	IS(0, ncclCommWindowDeregister(c, NULL));
	IS(0, ncclMemFree(m));
	IS(1, ncclMemFree(m));
}

static void derived(ncclComm_t c, ncclComm_t other)
{
	ncclComm_t z, pair[2];
	ncclUniqueId id;
	int self = 0, one = 1, beyond = 5, neg = -1;
	ncclConfig_t bad = NCCL_CONFIG_INITIALIZER;
	bad.splitShare = 2;
	OK(ncclCommInitAll(pair, 2, NULL));
	IS(4, ncclCommSplit(other, 0, 0, &z, NULL));
	IS(4, ncclCommSplit(c, 0, 0, NULL, NULL));
	IS(4, ncclCommSplit(c, 0, 0, &z, &bad));
	IS(0, ncclCommSplit(c, NCCL_SPLIT_NOCOLOR, 0, &z, NULL));
	CHECK(z == NULL);
	IS(4, ncclCommShrink(other, &one, 1, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], NULL, 1, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &one, 0, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &one, -2, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &one, 1, NULL, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &self, 1, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &beyond, 1, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &neg, 1, &z, NULL, 0));
	IS(4, ncclCommShrink(pair[0], &one, 1, &z, &bad, 0));
	IS(0, ncclCommShrink(pair[0], &one, 1, &z, NULL, 6)); // only the first bit says something
	IS(0, ncclCommDestroy(z));
	IS(0, ncclCommShrink(pair[0], &one, 1, &z, NULL, NCCL_SHRINK_ABORT));
	IS(0, ncclCommDestroy(z));
	IS(4, ncclCommGrow(c, 0, NULL, -1, &z, NULL));
	IS(4, ncclCommGrow(c, 1, NULL, -1, &z, NULL));
	IS(4, ncclCommGrow(c, 2, NULL, 0, &z, NULL));
	IS(4, ncclCommGrow(c, 2, NULL, -1, NULL, NULL));
	IS(4, ncclCommGrow(NULL, 2, NULL, 1, &z, NULL));
	OK(ncclGetUniqueId(&id));
	IS(4, ncclCommGrow(NULL, 2, &id, -1, &z, NULL));
	IS(4, ncclCommGrow(NULL, 2, &id, 2, &z, NULL));
	IS(4, ncclCommGetUniqueId(other, &id));
	IS(4, ncclCommGetUniqueId(c, NULL));
	for (int i = 0; i < 2; i++)
		OK(ncclCommAbort(pair[i]));
}

// ends are calls after Finalize, Revoke, Destroy and Abort.
static void ends(void)
{
	static float a[4];
	ncclResult_t state;
	int x;
	ncclComm_t c = made(), z;
	IS(0, ncclCommFinalize(c));
	IS(4, ncclCommFinalize(c));
	IS(4, ncclAllReduce(a, a, 4, ncclFloat, ncclSum, c, NULL));
	IS(4, ncclCommRevoke(c, 0));
	IS(0, ncclCommCount(c, &x));
	IS(0, ncclCommDestroy(c));
	questions(c = made(), (ncclComm_t)&x);
	IS(4, ncclCommRevoke(c, 1));
	IS(4, ncclCommRevoke(c, -1));
	IS(0, ncclCommRevoke(c, NCCL_REVOKE_DEFAULT));
	IS(4, ncclCommRevoke(c, NCCL_REVOKE_DEFAULT));
	IS(5, ncclAllReduce(a, a, 4, ncclFloat, ncclSum, c, NULL));
	IS(5, ncclAllReduce(a, a, 0, ncclFloat, ncclSum, c, NULL));
	IS(5, ncclSend(a, 1, ncclFloat, 0, c, NULL));
	IS(4, ncclCommFinalize(c));
	IS(0, ncclCommGetAsyncError(c, &state));
	CHECK(state == ncclSuccess);
	IS(0, ncclCommCount(c, &x));
	IS(0, ncclCommSplit(c, 0, 0, &z, NULL));
	IS(0, ncclAllReduce(a, a, 4, ncclFloat, ncclSum, z, NULL));
	IS(0, ncclCommDestroy(c));
	IS(4, ncclCommDestroy(c));
	IS(4, ncclCommRevoke(c, 0));
	IS(0, ncclCommAbort(z));
	IS(4, ncclCommAbort(z));
	IS(4, ncclCommFinalize(z));
	questions(z = made(), c);
	collectives(z, c);
	operators(z, c);
	memory(z, c);
	derived(z, c);
	IS(0, ncclCommDestroy(z));
}

int main(void)
{
	const char *texts[9];
	for (int i = 0; i < 9; i++)
		texts[i] = ncclGetErrorString((ncclResult_t)(i < 8 ? i : -1));
	ncclComm_t c = made();
	makers();
	questions(c, NULL);
	collectives(c, NULL);
	operators(c, NULL);
	groups(c);
	memory(c, NULL);
	derived(c, NULL);
	IS(0, ncclCommDestroy(c));
	ends();
	for (int i = 0; i < 9; i++)
		CHECK(texts[i] == ncclGetErrorString((ncclResult_t)(i < 8 ? i : -1)));
	if (!wrong)
		puts("ok");
	return wrong != 0;
}
