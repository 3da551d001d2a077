"""Rank 1 is killed; the others get an error within 2 s, in a collective and in a receive. Run as killed.py RANK SIZE FILE."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import torch_ringo

rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("ringo", init_method="file://" + file, rank=rank, world_size=size)
dist.all_reduce(torch.ones(1))
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
began = time.monotonic()
try:
    if rank == 2:
        dist.recv(torch.zeros(1), 1)
    else:
        dist.all_reduce(torch.ones(1))
    sys.exit("no error")
except RuntimeError as e:
    took = time.monotonic() - began
    assert "rank 1" in str(e), e
    assert took < float(os.environ.get("MOST_SECONDS", "2")), took
print("ok")
