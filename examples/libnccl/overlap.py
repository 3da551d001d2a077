"""Times of all-reduces, alone and at the same time as products of 8192 x 8192 matrices of bfloat16:

    python3 -m torch.distributed.run --nproc-per-node 2 examples/libnccl/overlap.py NAME

Rank 0 prints a line for each size, with NAME."""

import os
import sys
import time

import torch
import torch.distributed as dist

SIDE, PRODUCTS = 8192, 6
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
computing, moving = torch.cuda.Stream(), torch.cuda.Stream()
a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
out = torch.empty_like(a)


def products(n=PRODUCTS):
    with torch.cuda.stream(computing):
        for _ in range(n):
            torch.mm(a, b, out=out)


def reduce(x, n):
    with torch.cuda.stream(moving):
        for _ in range(n):
            dist.all_reduce(x)


def median(f, n=5):
    times = []
    for _ in range(n):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        ms = f()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin) if ms is None else ms)
    return sorted(times)[n // 2]


products(10)
for mib in 25, 64, 256:
    x, n = torch.ones(mib << 19, device="cuda", dtype=torch.bfloat16), max(4, 1024 // mib)
    reduce(x, 3)

    def both():
        products()
        reduce(x, n)

    def product():  # the time of a product beside an all-reduce
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        reduce(x, n)
        events[0].record(computing)
        products(2)
        events[1].record(computing)
        torch.cuda.synchronize()
        return events[0].elapsed_time(events[1]) / 2

    alone, one = median(lambda: reduce(x, n)), median(products)
    together, beside = median(both), median(product)
    if rank == 0:
        print(
            f"BESIDE {sys.argv[1]:10} {n} x {mib} MiB {alone:.2f} ms alone, {PRODUCTS} products {one:.2f}, both {together:.2f}; "
            f"a product {one / PRODUCTS:.2f} alone, {beside:.2f} beside", flush=True)
dist.destroy_process_group()
