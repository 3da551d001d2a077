"""Llama of transformers in tensor parallel, greedy decoding by its own generate: all-reduces and norms as transformers has
them, on NCCL, beside one kernel of Ringo for both (ringo_norm.py). Tokens a second, and whether the tokens are the same.

    RINGO_LIBRARY=build/libnccl.so.2 torchrun --nproc-per-node 2 bindings/python/llama.py [MODEL]

MODEL is a folder or a name that transformers can load; without, weights are random, of TinyLlama's shape. Without GPUs it
runs on the host with Gloo, where norms are PyTorch's (use --small)."""

import argparse
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ringo_norm


def shard(model, rank, size):
    """Reduces the model to this rank's heads and inner rows: products o_proj and down_proj then are this rank's parts of sums."""
    for layer in model.model.layers:
        a, m = layer.self_attn, layer.mlp
        for linear, dim in ((a.q_proj, 0), (a.k_proj, 0), (a.v_proj, 0), (a.o_proj, 1), (m.gate_proj, 0), (m.up_proj, 0), (m.down_proj, 1)):
            linear.weight = torch.nn.Parameter(linear.weight.chunk(size, dim)[rank].contiguous(), requires_grad=False)


class Residual:
    """The rows that are added to the next sum. A layer hands them to the next one, beside the normed rows that it returns."""

    rows = None


class Layer(torch.nn.Module):
    """A layer that takes normed rows and returns rows normed for the next layer. finish adds the ranks' parts, and norms."""

    def __init__(self, layer, first, next_norm, residual, finish):
        super().__init__()
        self.layer, self.first, self.next_norm, self.residual, self.finish = layer, first, next_norm, residual, finish

    def __getattr__(self, name):  # generate reads attributes of the layer
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)

    def forward(self, hidden_states, **kw):
        if self.first:
            self.residual.rows, hidden_states = hidden_states, self.layer.input_layernorm(hidden_states)
        kw.pop("use_cache", None)
        part = self.layer.self_attn(hidden_states=hidden_states, **kw)[0]
        normed, self.residual.rows = self.finish(part, self.residual.rows, self.layer.post_attention_layernorm)
        normed, self.residual.rows = self.finish(self.layer.mlp(normed), self.residual.rows, self.next_norm)
        return normed


def by_transformers(x, residual, norm):
    dist.all_reduce(x)
    residual = residual + x
    return norm(residual), residual


def by_ringo(comm):
    def finish(x, residual, norm):
        return comm.all_reduce_norm(x.contiguous(), residual.contiguous(), norm.weight, norm.variance_epsilon)

    return finish


def install(model, layers, norm, finish):
    """Replaces the model's layers by layers that end with finish. The last one norms for the head."""
    residual = Residual()
    norms = [l.input_layernorm for l in layers[1:]] + [norm]
    model.model.layers = torch.nn.ModuleList(Layer(l, i == 0, n, residual, finish) for i, (l, n) in enumerate(zip(layers, norms)))
    model.model.norm = torch.nn.Identity()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?")
    p.add_argument("--small", action="store_true", help="two layers of 64")
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--batches", default="1,8,32")
    a = p.parse_args()
    rank, size, gpu = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    device = torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")
    dist.init_process_group("nccl" if gpu else "gloo", **({"device_id": device} if gpu else {}))
    torch.manual_seed(0)
    if a.model:
        model = LlamaForCausalLM.from_pretrained(a.model, torch_dtype=torch.bfloat16)
    else:
        hidden, inner, layers, heads, kv, words = (64, 128, 2, 4, 2, 100) if a.small else (2048, 5632, 22, 32, 4, 32000)
        torch.set_default_dtype(torch.bfloat16 if gpu else torch.float32)
        model = LlamaForCausalLM(LlamaConfig(
            hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
            vocab_size=words, max_position_embeddings=2048, initializer_range=0.1, attn_implementation="sdpa"))
    model = model.eval()
    shard(model, rank, size)
    model = model.to(device)
    comm = ringo_norm.open()
    if rank == 0 and comm.why:
        print("without the library:", comm.why, flush=True)
    layers, norm = list(model.model.layers), model.model.norm
    prompts = torch.randint(model.config.vocab_size, (max(map(int, a.batches.split(","))), 16)).to(device)
    for batch in map(int, a.batches.split(",")):
        rates, tokens = {}, {}
        for name, finish in (("transformers", by_transformers), ("ringo", by_ringo(comm))):
            install(model, layers, norm, finish)
            best = float("inf")
            for _ in range(3):
                dist.barrier()
                begin = time.perf_counter()
                with torch.inference_mode():
                    out = model.generate(
                        prompts[:batch], attention_mask=torch.ones_like(prompts[:batch]), do_sample=False, min_new_tokens=a.tokens,
                        max_new_tokens=a.tokens, pad_token_id=0)
                if gpu:
                    torch.cuda.synchronize()
                best = min(best, time.perf_counter() - begin)
            rates[name], tokens[name] = batch * a.tokens / best, out
            others = [torch.empty_like(out) for _ in range(size)]
            dist.all_gather(others, out)
            assert all(torch.equal(o, out) for o in others), name + ": ranks differ"
        if rank == 0:
            alike = (tokens["transformers"] == tokens["ringo"])[:, 16:].float().mean().item()
            print("LLAMA batch %d: transformers on NCCL %.0f tokens/s, ringo %.0f, %.2f times as many; tokens alike %.0f %%, different %d" % (
                batch, rates["transformers"], rates["ringo"], rates["ringo"] / rates["transformers"], 100 * alike, tokens["ringo"].unique().numel()), flush=True)
    comm.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
