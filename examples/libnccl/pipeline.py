"""PyTorch pipeline parallel training of a small network, a stage on each rank. Run it with NCCL and with Ringo and
compare the losses:

    torchrun --nproc-per-node 2 examples/libnccl/pipeline.py
    LD_PRELOAD=$PWD/build/libnccl.so.2 torchrun --nproc-per-node 2 examples/libnccl/pipeline.py
"""

import os

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
device = torch.device("cuda", torch.cuda.current_device())
dist.init_process_group("nccl", device_id=device)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
layers = [torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0, batch_first=True) for _ in range(3)]
model = torch.nn.Sequential(*layers).to(device)
stage = PipelineStage(model, rank, size, device)
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda out, want: (out - want).square().mean())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(1)
data = torch.randn(8, 8, 128, 512, device=device)
for step in range(8):
    losses = []
    if rank == 0:
        schedule.step(data[step])
    elif rank == size - 1:
        schedule.step(target=data[step], losses=losses)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
    if rank == size - 1:
        print(f"step {step} loss {torch.stack(losses).mean().item():.7f}", flush=True)
dist.destroy_process_group()
