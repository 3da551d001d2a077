"""ringo_serving in stand-ins for vLLM and SGLang, whose Llamas have the same modules: the same results with Ringo and without.
Run on each rank as serving.py RANK SIZE FILE."""

import importlib
import sys
import types

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, "serving")
rank, size = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
hidden, inner, words = 8, 4 * size, 20
reduced = 0


class RowParallelLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.reduce_results = nn.Parameter(torch.randn(hidden, inner // size) * 0.3), True

    def forward(self, x):
        global reduced
        x = x @ self.weight.t()
        if self.reduce_results:
            reduced += 1
            dist.all_reduce(x)
        return x, None


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.rand(hidden) + 0.5), 1e-5

    def forward(self, x, residual=None):
        s = x if residual is None else x + residual
        y = s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + self.variance_epsilon) * self.weight
        return y if residual is None else (y, s)


class Part(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.up = nn.Parameter(torch.randn(inner // size, hidden) * 0.3)
        setattr(self, name, RowParallelLinear())
        self.name = name

    def forward(self, x):
        return getattr(self, self.name)(torch.tanh(x @ self.up.t()))[0]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = Part("o_proj"), Part("down_proj")
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(), RMSNorm()

    def forward(self, x, residual):
        if residual is None:
            residual, x = x, self.input_layernorm(x)
        else:
            x, residual = self.input_layernorm(x, residual)
        x, residual = self.post_attention_layernorm(self.self_attn(x), residual)
        return self.mlp(x), residual


class LlamaForCausalLM(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.model = nn.Module()
        torch.manual_seed(seed)
        self.model.norm, self.embed = RMSNorm(), torch.randn(words, hidden)
        self.model.layers = nn.ModuleList(Layer() for _ in range(3))
        for layer in self.model.layers:  # weights that differ by rank: its parts
            for part in (layer.self_attn, layer.mlp):
                torch.manual_seed(seed + 1 + rank)
                part.up.data.normal_()

    def forward(self, tokens):
        x, residual = self.embed[tokens], None
        for layer in self.model.layers:
            x, residual = layer(x, residual)
        return self.model.norm(x, residual)[0]


def module(name, **names):
    m = types.ModuleType(name)
    m.__path__ = []
    m.__dict__.update(names)
    sys.modules[name] = m
    return m


class Registry(dict):
    register_model = dict.__setitem__


registry = Registry()
group = types.SimpleNamespace(cpu_group=dist.group.WORLD)
module("vllm", ModelRegistry=registry)
module("vllm.distributed", get_tp_group=lambda: group)
module("vllm.model_executor")
module("vllm.model_executor.models")
module("vllm.model_executor.models.llama", LlamaForCausalLM=LlamaForCausalLM)
module("sglang")
module("sglang.srt")
module("sglang.srt.distributed", get_tp_group=lambda: group)
llama = module("sglang.srt.models.llama", LlamaForCausalLM=LlamaForCausalLM)
module("sglang.srt.models", llama=llama)

import ringo_serving

ringo_serving.register()
name, cls = registry["LlamaForCausalLM"].split(":")
ours = [getattr(importlib.import_module(name), cls), importlib.import_module("ringo_serving.sglang.llama").EntryClass]
tokens = torch.arange(13) % words
with torch.no_grad():
    want = LlamaForCausalLM(3)(tokens)
    assert reduced == 6, reduced
    for cls in ours:
        assert cls.__name__.endswith("LlamaForCausalLM") and cls is not LlamaForCausalLM
        model = cls(3)
        names = [n for n, _ in model.named_parameters()]
        assert names == [n for n, _ in LlamaForCausalLM(3).named_parameters()], "weights are loaded by name"
        torch.testing.assert_close(model(tokens), want, rtol=1e-5, atol=1e-5)
        assert reduced == 6, "products still add the ranks' parts"
        assert model.ringo_comm.size == size
    try:
        ringo_serving.install(model, dist.group.WORLD)
        raise AssertionError("installed twice")
    except ValueError as e:
        assert "does not add" in str(e), e
dist.barrier()
dist.destroy_process_group()
print("ok", flush=True)
