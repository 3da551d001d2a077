"""Under torchrun --max-restarts: rank 1 kills itself in the first life of the job; the second life succeeds. Rank 0 prints ok."""

import os
import signal

import torch
import torch.distributed as dist

import torch_ringo

dist.init_process_group("ringo")
rank, size = dist.get_rank(), dist.get_world_size()
x = torch.tensor([float(rank)])
dist.all_reduce(x)
assert x.item() == size * (size - 1) / 2, x
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()  # fails, or torchrun ends the process first
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    print("ok after %s restart" % os.environ["TORCHELASTIC_RESTART_COUNT"])
