"""All-reduces of bfloat16 rows (tokens) with residual and RMSNorm in CUDA graphs of 20, in µs: NCCL alone, NCCL and a compiled norm,
torch's two-shot all-reduce in symmetric memory and a compiled norm, the norm alone, and one kernel of Ringo; then whether torch.compile
takes Ringo's.

    RINGO_LIBRARY=build/libnccl.so.2 torchrun --nproc-per-node 2 bindings/python/norm_bench.py
"""

import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ringo_norm

p = argparse.ArgumentParser()
p.add_argument("--hidden", type=int, default=8192)
p.add_argument("--tokens", default="1,8,32,64,128,256,1024")
a = p.parse_args()
rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
dev, dtype = torch.device("cuda", torch.cuda.current_device()), torch.bfloat16
dist.init_process_group("nccl", device_id=dev)
comm = ringo_norm.open()
assert not comm.why, comm.why
weight = torch.ones(a.hidden, device=dev, dtype=dtype)


@torch.compile
def norm(x, residual):
    s = x + residual
    residual.copy_(s)
    v = s.float()
    return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-6)).to(dtype) * weight


def measure(f, n=20):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            f()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(n):
            f()
    times = []
    for _ in range(15):
        dist.barrier()
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 2 / n * 1e3)
    return sorted(times)[len(times) // 2]


if rank == 0:
    print("NORM tokens: NCCL, NCCL + norm, two-shot + norm, norm alone, Ringo's one kernel (µs)", flush=True)
for tokens in map(int, a.tokens.split(",")):
    x, residual = (torch.randn(tokens, a.hidden, device=dev).mul(0.01).to(dtype) for _ in range(2))
    out = torch.empty_like(x)
    norm(x, residual)
    shared = symmetric.empty(tokens, a.hidden, device=dev, dtype=dtype)
    group = dist.group.WORLD.group_name
    symmetric.rendezvous(shared, group)
    shared.normal_()
    row = [
        measure(lambda: dist.all_reduce(x)),
        measure(lambda: (dist.all_reduce(x), norm(x, residual))),
        measure(lambda: (torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group), norm(shared, residual))),
        measure(lambda: norm(x, residual)),
        measure(lambda: comm.all_reduce_norm(x, residual, weight, 1e-6, out=out)),
    ]
    if rank == 0:
        print("NORM %d:" % tokens, *["%.2f" % v for v in row], flush=True)


@torch.compile
def twice(x, residual):
    y, s = comm.all_reduce_norm(x, residual, weight, 1e-6)
    return 2 * y, 2 * s


x, residual = (torch.randn(8, a.hidden, device=dev).to(dtype) for _ in range(2))
same = all(torch.equal(u, 2 * v) for u, v in zip(twice(x, residual), comm.all_reduce_norm(x, residual, weight, 1e-6)))
if rank == 0:
    print("NORM in torch.compile: the same bits: %s" % same, flush=True)
comm.close()
dist.barrier()
dist.destroy_process_group()
