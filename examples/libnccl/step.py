"""Times of a training step of a Llama-like model, by DDP or FSDP2, to measure what communication adds:

    python3 -m torch.distributed.run --nproc-per-node 2 examples/libnccl/step.py NAME ddp|fsdp|alone BATCH [SHAPE]

SHAPE is 1b (0.95 G parameters, the default) or wide (0.67 G, fewer and wider layers). Mode alone has no
communication. Rank 0 prints a line with NAME. If the host takes as long to queue a step as the step takes, the host
is the limit, and the time tells nothing about the GPU."""

import os
import sys
import time

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM

SHAPES = {"1b": (2048, 5632, 16, 16), "wide": (4096, 11008, 2, 32)}  # hidden, intermediate, layers, heads
LENGTH = 2048


def model(shape):
    hidden, intermediate, layers, heads = SHAPES[shape]
    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads, vocab_size=32000, max_position_embeddings=LENGTH, attn_implementation="sdpa", use_cache=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return LlamaForCausalLM(config)


def shared(m, mode, rank):
    if mode == "ddp":
        return torch.nn.parallel.DistributedDataParallel(m, device_ids=[rank], gradient_as_bucket_view=True, static_graph=True)
    if mode == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for layer in m.model.layers:
            fully_shard(layer)
        fully_shard(m)
    return m


def main():
    name, mode, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    shape = sys.argv[4] if len(sys.argv) > 4 else "1b"
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(0)
    m = model(shape)
    count = sum(p.numel() for p in m.parameters())
    m = shared(m, mode, rank)
    optimizer = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
    generator = torch.Generator(device="cuda").manual_seed(rank)
    x = torch.randint(0, 32000, (batch, LENGTH), device="cuda", generator=generator)

    def step():
        loss = m(input_ids=x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    times, hosts = [], []  # of a step; until the host has queued the step
    for _ in range(16):
        begin = time.perf_counter()
        loss = step()
        hosts.append(1e3 * (time.perf_counter() - begin))
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    times.sort()
    hosts.sort()
    if rank == 0:
        print(f"STEP {name:10} {mode:5} {shape:4} batch {batch}, {count / 1e9:.2f} G: median {times[8]:.1f} ms, least {times[0]:.1f}, queued after {hosts[8]:.1f}, loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


main()
