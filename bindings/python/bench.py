"""Times of the operations of a process group, Ringo beside Gloo: bench.py [RANKS] [MOST BYTES]. Ringo and Gloo take rounds
in turns. Each number is the best median of a round, in µs."""

import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import time


def rounds(dist, torch, group, f, least):
    """The median of the times of f, of at least 0.1 s of calls."""
    for _ in range(3):
        f(group)
    dist.barrier(group=group)
    times = []
    for _ in range(least):
        began = time.perf_counter()
        f(group)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def opener(dist, torch_ringo, backend, store, rank, size):
    """A process group, opened without torch's init_process_group, whose barrier sleeps for 10 ms before torch 2.1."""
    limit = datetime.timedelta(minutes=5)
    return (torch_ringo.ProcessGroup if backend == "ringo" else dist.ProcessGroupGloo)(store, rank, size, limit)


def model(torch, group):
    layers = []
    for i in range(8):
        layers += [torch.nn.Conv2d(3 if i == 0 else 32, 32, 3, padding=1), torch.nn.ReLU()]
    net = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(32 * 16 * 16, 100)), process_group=group)
    data = torch.randn(4, 3, 16, 16)

    def step(_):
        net.zero_grad()
        net(data).square().mean().backward()

    return step


def rank_main(rank, size, file, most):
    import torch
    import torch.distributed as dist

    import torch_ringo

    torch.set_num_threads(1)
    store = dist.FileStore(file, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    groups, opened = {}, {"gloo": [], "ringo": []}
    for _ in range(10):
        for backend in opened:
            dist.barrier()
            began = time.perf_counter()
            groups[backend] = opener(dist, torch_ringo, backend, dist.PrefixStore("%s%d" % (backend, len(opened[backend])), store), rank, size)
            took = torch.tensor([time.perf_counter() - began])
            dist.all_reduce(took, dist.ReduceOp.MAX)
            opened[backend].append(took.item() * 1e6)
    groups = {backend: dist.new_group(backend=backend) for backend in opened}
    rows = [("all-reduce", n, 1000 if n < 1 << 18 else 50 if n < 1 << 24 else 5) for n in (8, 1 << 16, 1 << 21, 1 << 26)]
    rows += [("broadcast", n, 50 if n < 1 << 24 else 3) for n in (1 << 16, 1 << 26, 1 << 30)]
    rows += [("barrier", 0, 1000), ("all_gather_object", 1000, 200), ("DDP step", 0, 20)]
    if rank == 0:
        print("%-20s %12s %12s %12s %8s" % ("operation", "bytes", "gloo µs", "ringo µs", "ratio"))
        for name, of in (("open the first group", lambda times: times[0]), ("open a group", statistics.median)):
            gloo, ringo = of(opened["gloo"]), of(opened["ringo"])
            print("%-20s %12s %12.0f %12.0f %8.2f" % (name, "", gloo, ringo, ringo / gloo))
    for name, n, least in rows:
        if n > most:
            continue
        data = torch.zeros(max(1, n // 4))
        best = {}
        steps = {b: model(torch, g) for b, g in groups.items()} if name == "DDP step" else None
        for _ in range(3):
            for backend, group in groups.items():
                f = {
                    "all-reduce": lambda g: dist.all_reduce(data, group=g),
                    "broadcast": lambda g: dist.broadcast(data, 0, group=g),
                    "barrier": lambda g: dist.barrier(group=g),
                    "all_gather_object": lambda g: dist.all_gather_object([None] * size, "x" * n, group=g),
                    "DDP step": steps and steps[backend],
                }[name]
                best[backend] = min(best.get(backend, 1e30), rounds(dist, torch, group, f, least))
        if rank == 0:
            print("%-20s %12d %12.1f %12.1f %8.2f" % (name, n, best["gloo"], best["ringo"], best["ringo"] / best["gloo"]), flush=True)
    dist.barrier(group=groups["ringo"])


def main():
    if os.environ.get("RINGO_BENCH_FILE"):
        rank, size, most = map(int, sys.argv[1:])
        return rank_main(rank, size, os.environ["RINGO_BENCH_FILE"], most)
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    most = sys.argv[2] if len(sys.argv) > 2 else str(1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "RINGO_BENCH_FILE": os.path.join(folder, "store"), "OMP_NUM_THREADS": "1"}
        env.setdefault("GLOO_SOCKET_IFNAME", "lo")
        ranks = [subprocess.Popen([sys.executable, __file__, str(r), str(size), most], env=env) for r in range(size)]
        sys.exit(max(abs(p.wait()) for p in ranks))


main()
