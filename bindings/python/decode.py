"""Greedy decoding of a Llama-like model in tensor parallel, a benchmark of ringo_norm.py: tokens a second with NCCL and a compiled
norm, and with one kernel of Ringo for both, and whether a prompt's tokens depend on the prompt's batch.

    RINGO_LIBRARY=build/libnccl.so.2 torchrun --nproc-per-node 2 bindings/python/decode.py

Weights are random, of TinyLlama's shape (1.1 G parameters) unless flags say otherwise. A step is a CUDA graph. Products of matrices
are of --pad rows whatever the batch, since cuBLAS chooses kernels by the number of rows, and these round differently. All is measured
once more with products of the batch's own rows (0).
Attention is a Triton kernel with a program for each head of each prompt, so it does not depend on the batch. Without GPUs the benchmark
runs on the host, with Gloo and without graphs (use --layers 2 --hidden 64 --heads 4 --kv 2 --inner 128 --vocab 100).
"""

import argparse
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ringo_norm

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

p = argparse.ArgumentParser()
for name, value in (("layers", 22), ("hidden", 2048), ("heads", 32), ("kv", 4), ("inner", 5632), ("vocab", 32000), ("prompt", 16), ("tokens", 128),
                    ("repeat", 3)):
    p.add_argument("--" + name, type=int, default=value)
p.add_argument("--batches", default="1,8,32")
p.add_argument("--pad", default="32,0")
a = p.parse_args()
batches, pads = ([int(b) for b in s.split(",")] for s in (a.batches, a.pad))
most = max(batches)

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
gpu = torch.cuda.is_available()
if gpu:
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    dev, dtype = torch.device("cuda", torch.cuda.current_device()), torch.bfloat16
else:
    dev, dtype = torch.device("cpu"), torch.float32
dist.init_process_group("nccl" if gpu else "gloo", **({"device_id": dev} if gpu else {}))
comm = ringo_norm.open()
if rank == 0 and comm.why:
    print("without the library:", comm.why, flush=True)

D, heads, kv, inner, epsilon = a.hidden // a.heads, a.heads // size, a.kv // size, a.inner // size, 1e-5
length = a.prompt + a.tokens


def random(seed, rows, columns, split=None):
    """A random weight [rows, columns], or this rank's part of its rows (split 0) or columns (1). All ranks draw the same weight."""
    g = torch.Generator(device=dev).manual_seed(seed)
    w = torch.randn(rows, columns, generator=g, device=dev, dtype=torch.float32) * columns ** -0.5
    if split is not None:
        w = w.chunk(size, split)[rank]
    return w.to(dtype).contiguous()


class Layer:
    def __init__(self, i):
        h, seed = a.hidden, 100 * i
        self.qkv = torch.cat([random(seed + 1, a.heads * D, h, 0), random(seed + 2, a.kv * D, h, 0), random(seed + 3, a.kv * D, h, 0)])
        self.o = random(seed + 4, h, a.heads * D, 1)
        self.up = torch.cat([random(seed + 5, a.inner, h, 0), random(seed + 6, a.inner, h, 0)])
        self.down = random(seed + 7, h, a.inner, 1)
        self.keys = torch.zeros(most, kv, length, D, device=dev, dtype=dtype)
        self.values = torch.zeros_like(self.keys)


layers = [Layer(i) for i in range(a.layers)]
embed, head = random(10 ** 6, a.vocab, a.hidden) * a.hidden ** 0.5, random(10 ** 6 + 1, a.vocab, a.hidden)
weight = torch.ones(a.hidden, device=dev, dtype=dtype)
angles = torch.outer(torch.arange(length, device=dev), 10000.0 ** (-torch.arange(0, D, 2, device=dev) / D))
cos, sin = angles.cos().float().contiguous(), angles.sin().float().contiguous()
prompts = torch.randint(a.vocab, (most, a.prompt), generator=torch.Generator().manual_seed(7)).to(dev)

if triton:

    @triton.jit
    def rotate_kernel(qkv, keys, values, cos, sin, at, HEADS: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, T: tl.constexpr):
        b, h = tl.program_id(0), tl.program_id(1)
        pos, i = tl.load(at), tl.arange(0, D // 2)
        row = qkv + (b * (HEADS + 2 * KV) + h) * D
        x, y = tl.load(row + i), tl.load(row + D // 2 + i)
        if h < HEADS + KV:
            u, v = x.to(tl.float32), y.to(tl.float32)
            c, s = tl.load(cos + pos * (D // 2) + i), tl.load(sin + pos * (D // 2) + i)
            first, second = u * c - v * s, v * c + u * s
            if h < HEADS:
                tl.store(row + i, first.to(x.dtype))
                tl.store(row + D // 2 + i, second.to(x.dtype))
            else:
                to = keys + ((b * KV + h - HEADS) * T + pos) * D
                tl.store(to + i, first.to(x.dtype))
                tl.store(to + D // 2 + i, second.to(x.dtype))
        else:
            to = values + ((b * KV + h - HEADS - KV) * T + pos) * D
            tl.store(to + i, x)
            tl.store(to + D // 2 + i, y)

    @triton.jit
    def attend_kernel(qkv, keys, values, out, at, scale, HEADS: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
        b, h = tl.program_id(0), tl.program_id(1)
        n, d, t = tl.load(at) + 1, tl.arange(0, D), tl.arange(0, BLOCK)
        q = tl.load(qkv + (b * (HEADS + 2 * KV) + h) * D + d).to(tl.float32) * scale
        base = (b * KV + h // (HEADS // KV)) * T * D
        top = -float("inf")
        total = 0.0
        acc = tl.zeros([D], dtype=tl.float32)
        for first in range(0, n, BLOCK):
            where = base + (first + t)[:, None] * D + d[None, :]
            on = first + t < n
            k = tl.load(keys + where, mask=on[:, None], other=0.0).to(tl.float32)
            v = tl.load(values + where, mask=on[:, None], other=0.0).to(tl.float32)
            s = tl.where(on, tl.sum(q[None, :] * k, 1), -float("inf"))
            new = tl.maximum(top, tl.max(s, 0))
            e, keep = tl.exp(s - new), tl.exp(top - new)
            total = total * keep + tl.sum(e, 0)
            acc = acc * keep + tl.sum(e[:, None] * v, 0)
            top = new
        tl.store(out + (b * HEADS + h) * D + d, (acc / total).to(out.dtype.element_ty))


def attention(qkv, l, out, batch, at):
    """Attention of qkv [batch, (heads + 2 kv) × D] into out [batch, heads × D]. The layer keeps the keys and values for position at."""
    if triton and gpu:
        rotate_kernel[(batch, heads + 2 * kv)](qkv, l.keys, l.values, cos, sin, at, heads, kv, D, length, num_warps=1)
        attend_kernel[(batch, heads)](qkv, l.keys, l.values, out, at, D ** -0.5, heads, kv, D, length, 64, num_warps=4)
        return
    pos, x = int(at), qkv[:batch].view(batch, heads + 2 * kv, D).float()
    u, v = x[..., : D // 2], x[..., D // 2:]
    r = torch.cat([u * cos[pos] - v * sin[pos], v * cos[pos] + u * sin[pos]], -1)
    l.keys[:batch, :, pos], l.values[:batch, :, pos] = r[:, heads: heads + kv].to(dtype), x[:, heads + kv:].to(dtype)
    k, v = (t[:batch, :, : pos + 1].float().repeat_interleave(heads // kv, 1) for t in (l.keys, l.values))
    s = (torch.einsum("bhd,bhtd->bht", r[:, :heads], k) * D ** -0.5).softmax(-1)
    out[:batch] = torch.einsum("bht,bhtd->bhd", s, v).reshape(batch, -1).to(dtype)


def rms(x):
    v = x.float()
    return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + epsilon)).to(dtype) * weight


def swiglu(x):
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def add_norm(x, residual):
    s = residual + x
    return rms(s), s


def add_norm_to(x, residual, normed):
    s = residual + x
    normed.copy_(rms(s))
    return s


compiled = torch.compile if gpu else lambda f: f
add_norm, add_norm_to, swiglu, rms = compiled(add_norm), compiled(add_norm_to), compiled(swiglu), compiled(rms)


def by_nccl(x, residual, normed):
    dist.all_reduce(x)
    return add_norm_to(x, residual, normed)


def by_ringo(x, residual, normed):
    """One kernel, which writes the normed rows to where the next product reads them."""
    return comm.all_reduce_norm(x, residual, weight, epsilon, out=normed)[1]


def by_nccl_unpadded(x, residual, normed):
    dist.all_reduce(x)
    return add_norm(x, residual)


def by_ringo_unpadded(x, residual, normed):
    return comm.all_reduce_norm(x, residual, weight, epsilon)


def product(x, w):
    return torch.nn.functional.linear(x, w)


class Decoder:
    """A decoder of one batch. A step reads the tokens and their position, and writes the next ones."""

    def __init__(self, batch, pad, finish, finish_unpadded):
        self.batch, self.rows = batch, max(batch, pad)
        self.finish = finish if self.rows > batch else finish_unpadded
        self.token = torch.zeros(batch, dtype=torch.long, device=dev)
        self.at = torch.zeros((), dtype=torch.int32, device=dev)
        self.given = torch.zeros(batch, length + 1, dtype=torch.long, device=dev)  # prompts, then what was decoded
        self.normed = torch.zeros(self.rows, a.hidden, device=dev, dtype=dtype)
        self.attended = torch.zeros(self.rows, heads * D, device=dev, dtype=dtype)
        self.graph = None

    def finished(self, x, residual):
        if self.rows == self.batch:
            return self.finish(x, residual, None)
        return self.normed, self.finish(x[: self.batch], residual, self.normed[: self.batch])

    def step(self):
        where = self.at.long().reshape(1)
        self.token.copy_(self.given.index_select(1, where)[:, 0])
        residual = embed.index_select(0, self.token)
        self.normed[: self.batch].copy_(rms(residual))
        normed = self.normed
        for l in layers:
            attention(product(normed, l.qkv), l, self.attended, self.batch, self.at)
            normed, residual = self.finished(product(self.attended, l.o), residual)
            normed, residual = self.finished(product(swiglu(product(normed, l.up)), l.down), residual)
        best = product(normed, head)[: self.batch].float().argmax(-1)
        next = (where + 1).expand(self.batch, 1)
        old = self.given.gather(1, next)[:, 0]
        self.given.scatter_(1, next, torch.where(where + 1 < a.prompt, old, best)[:, None])
        self.at += 1

    def reset(self):
        self.given.zero_()
        self.given[:, : a.prompt] = prompts[: self.batch]
        self.at.zero_()

    def run(self):
        """Decodes, and returns the tokens and the seconds of a step, in which each prompt gets a token."""
        if gpu and self.graph is None:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    self.reset()
                    self.step()
            torch.cuda.synchronize()
            dist.barrier()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream):
                self.step()
        self.reset()
        if gpu:
            torch.cuda.synchronize()
        dist.barrier()
        if gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(length - 1):
            self.graph.replay() if gpu else self.step()
        if gpu:
            torch.cuda.synchronize()
        return self.given[:, a.prompt: length].clone(), (time.perf_counter() - begin) / (length - 1)


if rank == 0:
    print("DECODE batch, rows of products: tokens/s NCCL + compiled norm, Ringo, times as many", flush=True)
for pad in pads:
    tokens = {}
    for batch in batches:
        rate = []
        for name, padded, plain in (("nccl", by_nccl, by_nccl_unpadded), ("ringo", by_ringo, by_ringo_unpadded)):
            d = Decoder(batch, pad, padded, plain)
            runs = [d.run() for _ in range(a.repeat)]
            assert all(torch.equal(r[0], runs[0][0]) for r in runs), name + ": runs differ"
            others = [torch.empty_like(runs[0][0]) for _ in range(size)]
            dist.all_gather(others, runs[0][0])
            assert all(torch.equal(o, others[0]) for o in others), name + ": ranks differ"
            tokens[name, batch] = runs[0][0]
            rate.append(batch / min(r[1] for r in runs))
            rows = d.rows
            del d
        if rank == 0:
            print("DECODE %d, %d: %.0f %.0f %.2f" % (batch, rows, rate[0], rate[1], rate[1] / rate[0]), flush=True)
    for name in ("nccl", "ringo"):
        same = [torch.equal(tokens[name, b], tokens[name, most][:b]) for b in batches]
        if rank == 0:
            print("DECODE %s, padded to %d: tokens of batches %s as in one of %d: %s" % (name, pad, batches, most, same), flush=True)
    if rank == 0:
        equal = (tokens["nccl", most] == tokens["ringo", most]).float().mean().item()
        print("DECODE tokens alike with NCCL and Ringo: %.0f %%, different tokens: %d" % (100 * equal, tokens["ringo", most].unique().numel()), flush=True)
comm.close()
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    print("ok", flush=True)
