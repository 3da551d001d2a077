"""CuPy's NcclCommunicator, two GPUs in one process:

    LD_PRELOAD=$PWD/build/libnccl.so.2 python3 examples/libnccl/cupy_sum.py
"""

import cupy
from cupy.cuda import nccl

comms = nccl.NcclCommunicator.initAll(2)
data = []
for i in range(2):
    with cupy.cuda.Device(i):
        data.append(cupy.full(1024, i + 1, dtype=cupy.float32))
nccl.groupStart()
for i, comm in enumerate(comms):
    with cupy.cuda.Device(i):
        comm.allReduce(data[i].data.ptr, data[i].data.ptr, 1024, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, cupy.cuda.Stream.null.ptr)
nccl.groupEnd()
for i in range(2):
    with cupy.cuda.Device(i):
        cupy.cuda.Stream.null.synchronize()
        assert (data[i] == 3).all()
print("NCCL", nccl.get_version(), "sums:", data[0][:4])
