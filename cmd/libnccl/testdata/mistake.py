"""mistake.c in Python, by ctypes, with the driver's interface where RINGO_EMULATE is set: mistake.py LIBRARY MISTAKE [RANK SIZE FILE]"""

import ctypes
import os
import sys
import threading
import time

RANKS, FLOATS, INT32, FLOAT32, SUM, MAX = 2, 100, 2, 7, 0, 2
library, mistake, apart = sys.argv[1], sys.argv[2], sys.argv[3:]
nccl = ctypes.CDLL(library)
nccl.ncclGetLastError.restype = ctypes.c_char_p
driver = ctypes.CDLL("libcuda.so.1") if os.environ.get("RINGO_EMULATE") else None
size_t, pointer = ctypes.c_size_t, ctypes.c_void_p


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


def cuda(name, *arguments):
    result = getattr(driver, name)(*arguments)
    if result:
        raise RuntimeError("%s: %d" % (name, result))


def device(rank):
    context = pointer()
    if driver:
        cuda("cuInit", 0)
        cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), rank)
        cuda("cuCtxSetCurrent", context)


def make(rank, comm):
    def tell(result):
        if result:
            print("rank %d is told: %s\n" % (rank, nccl.ncclGetLastError(None).decode()), end="", flush=True)

    def all_reduce(count, type=FLOAT32, op=SUM):
        tell(nccl.ncclAllReduce(x, x, size_t(count), type, op, comm, None))

    device(rank)
    data, wrong, x = (ctypes.c_float * FLOATS)(), rank == 1, pointer()
    if driver:
        cuda("cuMemAlloc_v2", ctypes.byref(x), size_t(4 * FLOATS))
        cuda("cuMemcpyHtoD_v2", x, data, size_t(4 * FLOATS))
    else:
        x = pointer(ctypes.addressof(data))
    all_reduce(FLOATS)
    if wrong and mistake == "group":
        tell(nccl.ncclGroupStart())
    if mistake == "root":
        tell(nccl.ncclBroadcast(x, x, size_t(FLOATS), FLOAT32, rank, comm, None))
    elif not (wrong and mistake == "call"):
        all_reduce(FLOATS // 2 if wrong and mistake == "count" else FLOATS, INT32 if wrong and mistake == "type" else FLOAT32,
                   MAX if wrong and mistake == "operator" else SUM)
    all_reduce(7)
    if driver:
        cuda("cuMemcpyDtoH_v2", data, x, size_t(4 * FLOATS))
    tell(nccl.ncclCommDestroy(comm))


def well(result):
    if result:
        raise RuntimeError(nccl.ncclGetLastError(None).decode())


def meet(rank, file):
    uid = UniqueId()
    if rank == 0:
        well(nccl.ncclGetUniqueId(ctypes.byref(uid)))
        with open(file + ".new", "wb") as f:
            f.write(bytes(uid))
        os.rename(file + ".new", file)
    while not os.path.exists(file):
        time.sleep(0.001)
    with open(file, "rb") as f:
        return UniqueId.from_buffer_copy(f.read())


comms = (pointer * RANKS)()
if apart:
    rank, comm = int(apart[0]), pointer()
    device(rank)
    well(nccl.ncclCommInitRank(ctypes.byref(comm), RANKS, meet(rank, apart[2]), rank))
    make(rank, comm)
else:
    well(nccl.ncclCommInitAll(comms, RANKS, None))
    threads = [threading.Thread(target=make, args=(rank, pointer(comms[rank]))) for rank in range(RANKS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
