"""PyTorch DDP or FSDP2 of a small transformer. Run it with NCCL and with Ringo and compare the losses:

    torchrun --nproc-per-node 2 examples/libnccl/ddp.py
    LD_PRELOAD=$PWD/build/libnccl.so.2 torchrun --nproc-per-node 2 examples/libnccl/ddp.py [fsdp]
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 6).cuda()
if sys.argv[1:] == ["fsdp"]:
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
else:
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
data = torch.randn(8, 8, 128, 512, device="cuda")
for step in range(8):
    torch.cuda.synchronize()
    start = time.perf_counter()
    loss = (model(data[step]) - data[step]).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(total := loss.detach().clone(), op=dist.ReduceOp.AVG)
    torch.cuda.synchronize()
    if dist.get_rank() == 0:
        print(f"step {step} loss {total.item():.7f} {1e3 * (time.perf_counter() - start):.1f} ms", flush=True)
dist.destroy_process_group()
