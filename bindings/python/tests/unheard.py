"""Rank 1 sums fewer elements, and nobody waits: who leaves the group is told. Run as unheard.py RANK SIZE FILE."""

import sys
import time

import torch
import torch.distributed as dist

import torch_ringo

rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("ringo", init_method="file://" + file, rank=rank, world_size=size)
group = next(iter(torch_ringo.group._open_groups))
work = dist.all_reduce(torch.ones(4 if rank == 1 else 8), async_op=True)
while not work.is_completed():
    time.sleep(0.001)
try:
    group.shutdown()
    sys.exit("nothing was raised")
except RuntimeError as e:
    assert "ranks disagree" in str(e) or "rank 1" in str(e), e
group.shutdown()
print("ok")
