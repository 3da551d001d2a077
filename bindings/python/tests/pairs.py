"""A rank of the jobs of TestPairs in internal/test/ctest: it makes the calls of PAIRS_SHAPES, rank 1 makes the mistake of PAIRS_MISTAKE, and
all make the calls again. PAIRS_MEET is a folder. Run as pairs.py [ddp]."""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import torch_ringo

rank, size = int(os.environ["RINGO_RANK"]), int(os.environ["RINGO_SIZE"])
mistake = os.environ["PAIRS_MISTAKE"] if rank == 1 else ""
timeout = datetime.timedelta(seconds=float(os.environ["RINGO_TIMEOUT"].rstrip("s")))


def all_reduce(group):
    return lambda more: dist.all_reduce(torch.ones(1000 + more), group=group)


def ring(more):
    ops = [dist.P2POp(dist.isend, torch.ones(1000 + more), (rank + 1) % size), dist.P2POp(dist.irecv, torch.ones(1000), (rank + size - 1) % size)]
    for w in dist.batch_isend_irecv(ops):
        w.wait()


def all_to_all(more):
    counts = [100 * (rank + i + 1) for i in range(size)]
    given = list(counts)
    given[(rank + 1) % size] += more
    dist.all_to_all_single(torch.ones(sum(counts)), torch.ones(sum(given)), counts, given)


def backward():
    model = DistributedDataParallel(torch.nn.Linear(10, 10))

    def step(more):
        if more:
            dist.all_reduce(torch.ones(7))
        else:
            model(torch.ones(2, 10)).sum().backward()

    return step


def main():
    dist.init_process_group("ringo", init_method="file://" + os.environ["PAIRS_MEET"] + "/store", rank=rank, world_size=size, timeout=timeout)
    calls = [backward()] if "ddp" in sys.argv else []
    for shape in os.environ["PAIRS_SHAPES"].split(","):
        if shape == "several communicators":
            calls += [all_reduce(None), all_reduce(dist.new_group(timeout=timeout))]
        elif shape == "a child of Split":
            calls.append(all_reduce(torch_ringo.split_group([list(range(size))], timeout=timeout)))
        elif shape == "a group":
            calls.append(ring)
        elif shape == "v-variants":
            calls.append(all_to_all)
        elif not calls:
            calls.append(all_reduce(None))
    for again in range(2):
        time.sleep(0.3 * again)  # the calls before have ended on all ranks
        if again and mistake == "exit":
            sys.exit(0)
        if again and mistake == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if again and mistake == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if again and mistake == "hang":
            time.sleep(3600)
        if again and mistake == "raise":
            raise ValueError("raised by rank 1")
        for i, call in enumerate(calls):
            call(1 if again and mistake == "mismatch" and i == 0 else 0)
    dist.all_reduce(torch.ones(1000))  # nobody leaves before all are done
    dist.destroy_process_group()
    if mistake == "close twice":
        dist.destroy_process_group()


try:
    main()
except RuntimeError as e:
    print("error:", e, file=sys.stderr)
    sys.exit(1)
