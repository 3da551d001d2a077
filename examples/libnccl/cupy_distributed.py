"""cupyx.distributed, two GPUs, a process each:

    LD_PRELOAD=$PWD/build/libnccl.so.2 python3 examples/libnccl/cupy_distributed.py
"""

import multiprocessing

N = 2


def work(rank):
    import cupy
    from cupyx.distributed import init_process_group

    cupy.cuda.Device(rank).use()
    comm = init_process_group(N, rank)

    def full(length, value):
        return cupy.full(length, value, dtype=cupy.float32)

    def check(name, got, want):
        assert cupy.asnumpy(got).ravel().tolist() == want, (name, rank, got)

    mine, got, many = full(4, rank + 1), full(4, 0), full(4 * N, 0)
    comm.all_reduce(mine, got)
    check("all_reduce", got, [3] * 4)
    comm.reduce(mine, got, root=1, op="max")
    check("reduce", got, [2 if rank == 1 else 3] * 4)
    got = full(4, rank + 7)
    comm.broadcast(got, root=1)
    check("broadcast", got, [8] * 4)
    comm.all_gather(mine, many, 4)
    check("all_gather", many, [1] * 4 + [2] * 4)
    pair = cupy.concatenate([full(4, 10 * rank + k) for k in range(N)])
    comm.reduce_scatter(pair, got, 4)
    check("reduce_scatter", got, [10 + 2 * rank] * 4)
    rows = pair.reshape(N, 4)
    comm.scatter(rows, got, root=0)
    check("scatter", got, [rank] * 4)
    table = cupy.zeros((N, 4), dtype=cupy.float32)
    comm.gather(mine, table, root=1)
    check("gather", table, [1] * 4 + [2] * 4 if rank == 1 else [0] * 8)
    comm.all_to_all(rows, table)
    check("all_to_all", table, [rank] * 4 + [10 + rank] * 4)
    comm.send_recv(mine, got, 1 - rank)
    check("send_recv", got, [2 - rank] * 4)
    if rank == 0:
        comm.send(mine, 1)
    else:
        comm.recv(got, 0)
        check("recv", got, [1] * 4)
    comm.barrier()
    cupy.cuda.Device().synchronize()
    if rank == 0:
        print("cupyx.distributed ok", flush=True)
    comm.stop()


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")  # CuPy's store starts a process, which fails if it is spawned
    ranks = [multiprocessing.Process(target=work, args=(r,)) for r in range(N)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
    assert all(p.exitcode == 0 for p in ranks), [p.exitcode for p in ranks]
