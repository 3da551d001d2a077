"""PyTorch tensor parallel training of a small network. Run it with NCCL and with Ringo and compare the losses:

    torchrun --nproc-per-node 2 examples/libnccl/tensor.py
    LD_PRELOAD=$PWD/build/libnccl.so.2 torchrun --nproc-per-node 2 examples/libnccl/tensor.py [sequence]
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
torch.manual_seed(0)
model = torch.nn.Sequential()
plan = {}
sequence = sys.argv[1:] == ["sequence"]
for i in range(4):
    model.add_module(f"norm{i}", torch.nn.LayerNorm(512))
    model.add_module(f"up{i}", torch.nn.Linear(512, 2048))
    model.add_module(f"act{i}", torch.nn.GELU())
    model.add_module(f"down{i}", torch.nn.Linear(2048, 512))
    if sequence:  # the norm's activations are divided by tokens: an all-gather before products, a reduce-scatter after
        if i > 0:  # the first norm has all tokens
            plan[f"norm{i}"] = SequenceParallel()
        plan[f"up{i}"] = ColwiseParallel(input_layouts=Shard(1) if i > 0 else Replicate())
        plan[f"down{i}"] = RowwiseParallel(output_layouts=Replicate() if i == 3 else Shard(1))
    else:
        plan[f"up{i}"], plan[f"down{i}"] = ColwiseParallel(), RowwiseParallel()
model = parallelize_module(model.cuda(), mesh, plan)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
torch.manual_seed(1)  # all ranks have the same data
data = torch.randn(8, 8, 128, 512, device="cuda")
for step in range(8):
    loss = (model(data[step]) - data[step]).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"step {step} loss {loss.item():.7f}", flush=True)
dist.destroy_process_group()
