"""ringo_norm without a GPU, by operations of PyTorch. Run on each rank as norm.py RANK SIZE FILE."""

import sys

import torch
import torch.distributed as dist

import ringo_norm

rank, size = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
comm = ringo_norm.open()
assert "no GPU" in comm.why, comm.why
generator = torch.Generator().manual_seed(5)
rows, row = 4, 24
xs = [torch.randn(size * rows, row, generator=generator) for _ in range(size)]
residual, weight, bias = (torch.randn(n, generator=generator) for n in ((size * rows, row), (row,), (row,)))


def expect(x, sum, normed, plus_one):
    torch.testing.assert_close(sum, x, rtol=0, atol=1e-6)
    want = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * (1 + weight if plus_one else weight)
    torch.testing.assert_close(normed, want, rtol=1e-5, atol=1e-5)


total = torch.stack(xs).sum(0) + bias + residual
normed, sum = comm.all_reduce_norm(xs[rank], residual, weight, 1e-5, bias=bias, plus_one=True)
expect(total, sum, normed, True)
normed, sum, small, scales = comm.all_reduce_norm(xs[rank], residual, weight, 1e-5, bias=bias, small=torch.int8)
expect(total, sum, normed, False)
assert (small.float() * scales.unsqueeze(-1) - normed).abs().max() <= scales.max() * 0.51
_, _, again, none = comm.all_reduce_norm(xs[rank], residual, weight, 1e-5, bias=bias, small=torch.int8, scale=torch.tensor([0.05]))
assert none.numel() == 0 and torch.equal(again.float(), (normed / 0.05).round().clamp(-127, 127))
mine = slice(rank * rows, (rank + 1) * rows)
normed, sum = comm.reduce_scatter_norm(xs[rank], residual[mine].clone(), weight, 1e-5, bias=bias)
expect(total[mine], sum, normed, False)
try:
    comm.all_reduce_norm(xs[rank], residual[1:], weight)
    raise AssertionError("a short residual was taken")
except ValueError as e:
    assert "residual" in str(e), e
comm.close()
dist.destroy_process_group()  # its threads would outlive it
print("ok")
