// CASE memory: none
// CASE memory_race: race
// CASE memory_kept: leak
// CASE empty: none
// CASE revoked: none
// CASE shrunk: none
// CASE aborted: none
// CASE graphs: none
// CASE graphs_late: none
// CASE graph_kept: leak
// CASE windows: none
// CASE ends: none
// CASE threads: none
// CASE processes: none
// CASE comm_kept: leak
// CASE one_gpu: prints two ranks on one GPU: NCCL refuses this
// FLAGS -lnccl
#include <nccl.h>
#include <thread>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include "verdict.h"

enum { GPUS = 2, N = 1000 };
static ncclComm_t comms[GPUS];
static cudaStream_t streams[GPUS];
static float *in[GPUS], *out[GPUS];

// NCCL wants a call of NCCL to succeed.
#define NCCL(call) MUST((call) == ncclSuccess)

// each calls f for every rank, its GPU being current.
template <class F> static void each(F f) {
	for (int i = 0; i < GPUS; i++) {
		CHECK(cudaSetDevice(i));
		f(i);
	}
}

// together is each in a group.
template <class F> static void together(F f) {
	NCCL(ncclGroupStart());
	each([&](int i) { NCCL(f(i)); });
	NCCL(ncclGroupEnd());
}

// beside calls f in a thread for every rank.
template <class F> static void beside(F f) {
	std::vector<std::thread> all;
	for (int i = 0; i < GPUS; i++)
		all.emplace_back([&, i] {
			CHECK(cudaSetDevice(i));
			f(i);
		});
	for (auto &t : all)
		t.join();
}

static void sum(ncclComm_t *of) {
	together([=](int i) { return ncclAllReduce(in[i], out[i], N, ncclFloat, ncclSum, of[i], streams[i]); });
}

// summed wants the ranks' numbers, 1 and 2, to have been added.
static void summed() {
	each([](int i) {
		CHECK(cudaStreamSynchronize(streams[i]));
		MUST(host(out[i], N - 1) == 3);
	});
}

static void make() {
	each([](int i) {
		std::vector<float> numbers(N, i + 1);
		CHECK(cudaStreamCreate(&streams[i]));
		in[i] = device<float>(N), out[i] = device<float>(N);
		CHECK(cudaMemcpy(in[i], numbers.data(), N * sizeof(float), cudaMemcpyHostToDevice));
		CHECK(cudaDeviceSynchronize());
	});
	NCCL(ncclCommInitAll(comms, GPUS, nullptr));
}

static void give_back() {
	each([](int i) {
		CHECK(cudaFree(in[i]));
		CHECK(cudaFree(out[i]));
		CHECK(cudaStreamDestroy(streams[i]));
	});
}

static void destroy(ncclComm_t *of) {
	each([=](int i) { NCCL(ncclCommDestroy(of[i])); });
}

__global__ void add(int *to, int v) { *to += v; }

// memory has GPU 1 add to memory of GPU 0, behind GPU 0 or beside it.
static void memory(bool behind, bool free) {
	int *p, seven = 7, *own;
	NCCL(ncclMemAlloc((void **)&p, 1 << 20));
	CHECK(cudaMemcpy(p, &seven, sizeof seven, cudaMemcpyHostToDevice));
	add<<<1, 1>>>(p, 1);
	if (behind)
		CHECK(cudaDeviceSynchronize());
	CHECK(cudaSetDevice(1));
	own = device<int>(1);
	add<<<1, 1>>>(p, 2);
	CHECK(cudaDeviceSynchronize());
	if (behind) {
		MUST(host(p) == 10); // by GPU 1
		CHECK(cudaMemcpy(own, p, sizeof *own, cudaMemcpyDeviceToDevice));
		MUST(host(own) == 10);
	}
	CHECK(cudaFree(own));
	CHECK(cudaSetDevice(0));
	CHECK(cudaDeviceSynchronize());
	if (free)
		NCCL(ncclMemFree(p));
}

// empty has one rank leave out each collective of no elements.
static void empty() {
	make();
	CHECK(cudaSetDevice(0));
	ncclComm_t c = comms[0];
	cudaStream_t s = streams[0];
	float *a = in[0], *b = out[0];
	NCCL(ncclAllReduce(a, b, 0, ncclFloat, ncclSum, c, s));
	NCCL(ncclReduce(a, b, 0, ncclFloat, ncclSum, 1, c, s));
	NCCL(ncclBroadcast(a, b, 0, ncclFloat, 0, c, s));
	NCCL(ncclBcast(a, 0, ncclFloat, 0, c, s));
	NCCL(ncclAllGather(a, b, 0, ncclFloat, c, s));
	sum(comms);
	summed();
	CHECK(cudaSetDevice(0));
	NCCL(ncclReduceScatter(a, b, 0, ncclFloat, ncclSum, c, s));
	NCCL(ncclGroupStart());
	NCCL(ncclAlltoAll(a, b, 0, ncclFloat, c, s));
	NCCL(ncclGather(a, b, 0, ncclFloat, 1, c, s));
	NCCL(ncclScatter(a, b, 0, ncclFloat, 1, c, s));
	NCCL(ncclGroupEnd());
	sum(comms);
	summed();
	destroy(comms);
	give_back();
}

// revoked ends a call for which the other rank does not come, and goes on with new communicators.
static void revoked() {
	ncclComm_t made[GPUS];
	ncclResult_t state;
	make();
	CHECK(cudaSetDevice(0));
	NCCL(ncclAllReduce(in[0], out[0], N, ncclFloat, ncclSum, comms[0], streams[0]));
	each([&](int i) {
		NCCL(ncclCommRevoke(comms[i], NCCL_REVOKE_DEFAULT));
		NCCL(ncclCommGetAsyncError(comms[i], &state));
		MUST(state == ncclSuccess);
	});
	for (int k = 0; k < 2; k++) {
		beside([&](int i) { NCCL(ncclCommSplit(comms[i], 0, i, &made[i], nullptr)); });
		sum(made);
		summed();
		destroy(made);
	}
	destroy(comms);
	give_back();
}

// shrunk leaves out the rank that does not come.
static void shrunk() {
	ncclComm_t lone;
	int other = 1;
	make();
	CHECK(cudaSetDevice(0));
	NCCL(ncclAllReduce(in[0], out[0], N, ncclFloat, ncclSum, comms[0], streams[0]));
	NCCL(ncclCommShrink(comms[0], &other, 1, &lone, nullptr, NCCL_SHRINK_ABORT));
	NCCL(ncclAllReduce(in[0], out[0], N, ncclFloat, ncclSum, lone, streams[0]));
	CHECK(cudaStreamSynchronize(streams[0]));
	MUST(host(out[0]) == 1);
	NCCL(ncclCommDestroy(lone));
	each([](int i) { NCCL(ncclCommAbort(comms[i])); });
	give_back();
}

static void aborted() {
	make();
	CHECK(cudaSetDevice(0));
	NCCL(ncclAllReduce(in[0], out[0], N, ncclFloat, ncclSum, comms[0], streams[0]));
	each([](int i) { NCCL(ncclCommAbort(comms[i])); });
	each([](int i) { CHECK(cudaStreamSynchronize(streams[i])); });
	give_back();
}

// graphs captures two collectives, throws one graph away, and launches the other one before the end of the
// communicators, or keeps it beyond.
static void graphs(bool late, bool keep) {
	cudaGraph_t graph[GPUS];
	cudaGraphExec_t exec[GPUS];
	make();
	for (int k = 0; k < 2; k++) {
		each([](int i) { CHECK(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeRelaxed)); });
		sum(comms);
		each([&](int i) {
			CHECK(cudaStreamEndCapture(streams[i], &graph[i]));
			if (k == 1)
				CHECK(cudaGraphInstantiate(&exec[i], graph[i], 0));
			CHECK(cudaGraphDestroy(graph[i]));
		});
	}
	for (int k = 0; k < 2; k++)
		each([&](int i) { CHECK(cudaGraphLaunch(exec[i], streams[i])); });
	summed();
	auto end = [&] {
		each([&](int i) {
			if (!keep || i)
				CHECK(cudaGraphExecDestroy(exec[i]));
		});
	};
	if (!late)
		end();
	destroy(comms);
	if (late)
		end();
	give_back();
}

// windows registers memory of two kinds, and frees it at once behind the communicators.
static void windows() {
	ncclWindow_t window[GPUS];
	void *handle[GPUS], *memory[GPUS];
	make();
	each([&](int i) { NCCL(ncclMemAlloc(&memory[i], 1 << 20)); });
	together([&](int i) { return ncclCommWindowRegister(comms[i], memory[i], 1 << 20, &window[i], NCCL_WIN_COLL_SYMMETRIC); });
	each([&](int i) { NCCL(ncclCommRegister(comms[i], in[i], N * sizeof(float), &handle[i])); });
	together([&](int i) { return ncclAllReduce(in[i], memory[i], N, ncclFloat, ncclSum, comms[i], streams[i]); });
	each([&](int i) {
		CHECK(cudaStreamSynchronize(streams[i]));
		MUST(host((float *)memory[i]) == 3);
		NCCL(ncclCommDeregister(comms[i], handle[i]));
		NCCL(ncclCommWindowDeregister(comms[i], window[i]));
		NCCL(ncclMemFree(memory[i]));
	});
	destroy(comms);
	give_back();
}

// ends makes communicators of several kinds, and ends at once behind their ends.
static void ends() {
	ncclComm_t parts[GPUS], all[GPUS];
	ncclUniqueId id;
	make();
	together([&](int i) { return ncclCommSplit(comms[i], 0, -i, &parts[i], nullptr); });
	NCCL(ncclGetUniqueId(&id));
	together([&](int i) { return ncclCommInitRank(&all[i], GPUS, id, i); });
	sum(parts);
	sum(comms);
	sum(all);
	together([&](int i) { return ncclSend(in[i], N, ncclFloat, 1 - i, all[i], streams[i]); }); // kept small: nobody waits
	together([&](int i) { return ncclRecv(out[i], N, ncclFloat, 1 - i, all[i], streams[i]); });
	each([](int i) { CHECK(cudaStreamSynchronize(streams[i])); });
	give_back();
	together([&](int i) { return ncclCommFinalize(comms[i]); });
	destroy(parts);
	destroy(all);
	NCCL(ncclCommDestroy(comms[1]));
	NCCL(ncclCommDestroy(comms[0]));
}

static void threads() {
	make();
	beside([](int i) {
		for (int k = 0; k < 3; k++)
			NCCL(ncclAllReduce(in[i], out[i], N, ncclFloat, ncclSum, comms[i], streams[i]));
		CHECK(cudaStreamSynchronize(streams[i]));
		NCCL(ncclCommDestroy(comms[i]));
	});
	give_back();
}

// processes has a rank in each of two processes, with a window, and both end at once behind Destroy.
static void processes() {
	int pipes[2], rank = 0, status = 0;
	float *memory;
	ncclUniqueId id;
	ncclWindow_t window;
	MUST(pipe(pipes) == 0);
	pid_t child = fork();
	if (child == 0)
		rank = 1;
	if (rank == 0)
		NCCL(ncclGetUniqueId(&id));
	MUST((rank ? read(pipes[0], &id, sizeof id) : write(pipes[1], &id, sizeof id)) == sizeof id);
	CHECK(cudaSetDevice(rank));
	NCCL(ncclCommInitRank(&comms[0], GPUS, id, rank));
	NCCL(ncclMemAlloc((void **)&memory, 1 << 20));
	CHECK(cudaMemset(memory, 0, 1 << 20));
	CHECK(cudaStreamCreate(&streams[0]));
	CHECK(cudaDeviceSynchronize());
	NCCL(ncclCommWindowRegister(comms[0], memory, 1 << 20, &window, NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclAllReduce(memory, memory, N, ncclFloat, ncclSum, comms[0], streams[0]));
	CHECK(cudaStreamSynchronize(streams[0]));
	CHECK(cudaStreamDestroy(streams[0]));
	NCCL(ncclCommWindowDeregister(comms[0], window));
	NCCL(ncclMemFree(memory));
	NCCL(ncclCommDestroy(comms[0]));
	if (rank == 0)
		MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void one_gpu() {
	int twice[] = {0, 0};
	NCCL(ncclCommInitAll(comms, GPUS, twice));
	destroy(comms);
}

int main(int, char **argv) {
	if (is(argv, "memory"))
		memory(true, true);
	if (is(argv, "memory_race"))
		memory(false, true);
	if (is(argv, "memory_kept"))
		memory(true, false);
	if (is(argv, "empty"))
		empty();
	if (is(argv, "revoked"))
		revoked();
	if (is(argv, "shrunk"))
		shrunk();
	if (is(argv, "aborted"))
		aborted();
	if (is(argv, "graphs"))
		graphs(false, false);
	if (is(argv, "graphs_late"))
		graphs(true, false);
	if (is(argv, "graph_kept"))
		graphs(true, true);
	if (is(argv, "windows"))
		windows();
	if (is(argv, "ends"))
		ends();
	if (is(argv, "threads"))
		threads();
	if (is(argv, "processes"))
		processes();
	if (is(argv, "one_gpu"))
		one_gpu();
	if (is(argv, "comm_kept")) {
		make();
		sum(comms);
		summed();
		NCCL(ncclCommDestroy(comms[0]));
		give_back();
	}
}
