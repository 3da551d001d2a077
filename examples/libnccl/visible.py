"""Two processes that see one GPU each, by CUDA_VISIBLE_DEVICES, as many launchers set it. For both their GPU is device 0, and
they still reach each other's memory. By ctypes, with the driver's interface:

    scripts/libnccl
    python3 examples/libnccl/visible.py build/libnccl.so.2
    scripts/libcuda && LD_LIBRARY_PATH=build RINGO_EMULATE=2 python3 examples/libnccl/visible.py build/libnccl.so.2
"""

import ctypes
import multiprocessing
import os
import sys

from sum import SUM, UniqueId, check, load, FLOAT32

RANKS, COUNT = 2, 8


def cuda(driver, name, *args):
    result = getattr(driver, name)(*args)
    if result != 0:
        raise RuntimeError(f"{name}: {result}")


def rank(me, path, pipe):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(me)  # before the driver is loaded
    driver = ctypes.CDLL("libcuda.so.1")
    device, context, x = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    seen, name = ctypes.c_int(), ctypes.create_string_buffer(64)
    cuda(driver, "cuInit", 0)
    cuda(driver, "cuDeviceGetCount", ctypes.byref(seen))
    cuda(driver, "cuDeviceGet", ctypes.byref(device), 0)
    cuda(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    cuda(driver, "cuCtxSetCurrent", context)
    cuda(driver, "cuDeviceGetName", name, len(name), device)
    data = (ctypes.c_float * COUNT)(*[me + i for i in range(COUNT)])
    cuda(driver, "cuMemAlloc_v2", ctypes.byref(x), ctypes.c_size_t(ctypes.sizeof(data)))
    cuda(driver, "cuMemcpyHtoD_v2", x, data, ctypes.c_size_t(ctypes.sizeof(data)))

    lib, uid, comm = load(path), UniqueId(), ctypes.c_void_p()
    if me == 0:
        check(lib, lib.ncclGetUniqueId(ctypes.byref(uid)))
        pipe[1].send_bytes(bytes(uid))
    else:
        uid = UniqueId.from_buffer_copy(pipe[0].recv_bytes())
    check(lib, lib.ncclCommInitRank(ctypes.byref(comm), RANKS, uid, me))
    check(lib, lib.ncclAllReduce(x, x, COUNT, FLOAT32, SUM, comm, None))
    cuda(driver, "cuMemcpyDtoH_v2", data, x, ctypes.c_size_t(ctypes.sizeof(data)))  # waits for the null stream
    check(lib, lib.ncclCommDestroy(comm))
    assert list(data) == [1 + 2 * i for i in range(COUNT)], list(data)
    if me == 0:
        print(f"{seen.value} visible, {name.value.decode()}, sums of {RANKS} ranks:", list(data))


if __name__ == "__main__":
    pipe = multiprocessing.Pipe(duplex=False)
    ranks = [multiprocessing.Process(target=rank, args=(i, sys.argv[1], pipe)) for i in range(RANKS)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
    sys.exit(any(p.exitcode for p in ranks))
