"""NCCL's interface by ctypes, as vLLM uses it (VLLM_NCCL_SO_PATH), on host memory. Ranks are processes:

    scripts/libnccl
    RINGO_HOST=1 python3 examples/libnccl/sum.py build/libnccl.so.2
"""

import ctypes
import multiprocessing
import sys

RANKS, COUNT = 4, 8
FLOAT32, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


def load(path):
    lib = ctypes.CDLL(path)
    lib.ncclGetLastError.restype = ctypes.c_char_p
    lib.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    lib.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    lib.ncclCommDestroy.argtypes = [ctypes.c_void_p]
    return lib


def check(lib, result):
    if result != 0:
        raise RuntimeError(lib.ncclGetLastError(None).decode())


def rank(me, path, pipes):
    lib = load(path)
    uid = UniqueId()
    if me == 0:
        check(lib, lib.ncclGetUniqueId(ctypes.byref(uid)))
        for pipe in pipes[1:]:
            pipe[1].send_bytes(bytes(uid))
    else:
        uid = UniqueId.from_buffer_copy(pipes[me][0].recv_bytes())
    comm = ctypes.c_void_p()
    check(lib, lib.ncclCommInitRank(ctypes.byref(comm), RANKS, uid, me))
    x = (ctypes.c_float * COUNT)(*[me + i for i in range(COUNT)])
    check(lib, lib.ncclAllReduce(x, x, COUNT, FLOAT32, SUM, comm, None))
    check(lib, lib.ncclCommDestroy(comm))
    assert list(x) == [6 + 4 * i for i in range(COUNT)]
    if me == 0:
        print("sums of", RANKS, "ranks:", list(x))


if __name__ == "__main__":
    pipes = [multiprocessing.Pipe(duplex=False) for _ in range(RANKS)]
    ranks = [multiprocessing.Process(target=rank, args=(i, sys.argv[1], pipes)) for i in range(RANKS)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
    sys.exit(any(p.exitcode for p in ranks))
