"""Rank 1 stops; the others' collectives and a receive end in a time-out that names rank 1. Run as stopped.py RANK SIZE FILE."""

import datetime
import os
import signal
import sys

import torch
import torch.distributed as dist

import torch_ringo

rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("ringo", init_method="file://" + file, rank=rank, world_size=size)
store = dist.FileStore(file + "2", size)
if rank == 1:
    store.set("pid", str(os.getpid()))
group = dist.new_group(timeout=datetime.timedelta(seconds=2))
dist.all_reduce(torch.ones(1), group=group)
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
    sys.exit("rank 1 went on")
try:
    dist.all_reduce(torch.ones(1), group=group)
    sys.exit("no error")
except RuntimeError as e:
    assert "rank 1" in str(e) and "timeout" in str(e).replace("timed out", "timeout"), e
if store.add("told", 1) == size - 1:
    os.kill(int(store.get("pid")), signal.SIGKILL)
print("ok")
