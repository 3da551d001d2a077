"""Every method of CuPy's NcclCommunicator, two GPUs in one process:

    LD_PRELOAD=$PWD/build/libnccl.so.2 python3 examples/libnccl/cupy_all.py
"""

import cupy
from cupy.cuda import nccl

N, COUNT = 2, 1000
stream = cupy.cuda.Stream.null.ptr
comms = nccl.NcclCommunicator.initAll(N)


def on(rank, f):
    with cupy.cuda.Device(rank):
        return f()


def arrays(length, value):
    return [on(r, lambda: cupy.full(length, value(r), dtype=cupy.float32)) for r in range(N)]


def together(call):
    nccl.groupStart()
    for r, comm in enumerate(comms):
        on(r, lambda: call(r, comm))
    nccl.groupEnd()
    for r in range(N):
        on(r, lambda: cupy.cuda.Stream.null.synchronize())


def check(name, wants):
    for r, want in enumerate(wants):
        got = on(r, lambda: cupy.asnumpy(dst[r]))
        assert got.tolist() == want, (name, r, got[:4], want[:4])
    print(name, "ok")


src, F, SUM = arrays(N * COUNT, lambda r: r + 1), nccl.NCCL_FLOAT32, nccl.NCCL_SUM
fresh = lambda: arrays(N * COUNT, lambda r: 0)
zeros = [0.0] * COUNT

dst = fresh()
together(lambda r, c: c.allReduce(src[r].data.ptr, dst[r].data.ptr, N * COUNT, F, SUM, stream))
check("allReduce", [[3.0] * N * COUNT] * N)
dst = fresh()
together(lambda r, c: c.reduce(src[r].data.ptr, dst[r].data.ptr, N * COUNT, F, nccl.NCCL_MAX, 1, stream))
check("reduce", [zeros * N, [2.0] * N * COUNT])
dst = fresh()
together(lambda r, c: c.broadcast(src[r].data.ptr, dst[r].data.ptr, N * COUNT, F, 1, stream))
check("broadcast", [[2.0] * N * COUNT] * N)
dst = arrays(N * COUNT, lambda r: r + 5)
together(lambda r, c: c.bcast(dst[r].data.ptr, N * COUNT, F, 1, stream))
check("bcast", [[6.0] * N * COUNT] * N)
dst = fresh()
together(lambda r, c: c.reduceScatter(src[r].data.ptr, dst[r].data.ptr, COUNT, F, SUM, stream))
check("reduceScatter", [[3.0] * COUNT + zeros] * N)
dst = fresh()
together(lambda r, c: c.allGather(src[r].data.ptr, dst[r].data.ptr, COUNT, F, stream))
check("allGather", [[1.0] * COUNT + [2.0] * COUNT] * N)
dst = fresh()


def exchange(r, c):
    c.send(src[r].data.ptr, COUNT, F, 1 - r, stream)
    c.recv(dst[r].data.ptr, COUNT, F, 1 - r, stream)


together(exchange)
check("send, recv", [[2.0] * COUNT + zeros, [1.0] * COUNT + zeros])
for r, comm in enumerate(comms):
    assert (comm.device_id(), comm.rank_id(), comm.size()) == (r, r, N)
    comm.check_async_error()
alone = on(0, lambda: nccl.NcclCommunicator(1, nccl.get_unique_id(), 0))
assert alone.size() == 1
alone.abort()
for comm in comms:
    comm.destroy()
tried = """abort allGather allReduce bcast broadcast check_async_error destroy device_id initAll rank_id recv reduce
    reduceScatter send size""".split()
left = [m for m in dir(nccl.NcclCommunicator) if not m.startswith("_") and m not in tried and m != "comm"]
print("NCCL", nccl.get_version(), "built for", nccl.get_build_version(), "methods not tried:", left)
