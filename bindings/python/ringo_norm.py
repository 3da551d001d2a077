"""All-reduce and reduce-scatter of rows (tokens) in one kernel with the operations after it: bias, residual, RMSNorm, and rows in 8 bits.

    comm = ringo_norm.open()                      # all ranks of a process group of torch.distributed, on their CUDA devices
    y, residual = comm.all_reduce_norm(x, residual, weight, epsilon)

A row's results have the same bits in every batch. The functions work under torch.compile, as the custom op ringo::norm with a fake
implementation, and in CUDA graphs. They call libnccl.so.2 of Ringo (cmd/libnccl/ringo_norm.h) by ctypes: the one that the process has
loaded (LD_PRELOAD), the one that RINGO_LIBRARY names, or one beside this file. If a rank has no such library, or tensors are not on a
GPU, operations of PyTorch take its place on all ranks (Comm.why is the reason): the last few bits differ, and may depend on the batch.
This file needs nothing but PyTorch and may be copied.
"""

import ctypes
import os
import pathlib
import weakref
from ctypes import byref, c_char, c_float, c_int, c_size_t, c_void_p
from typing import Optional, Tuple

import torch
import torch.distributed as dist

_types = {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}
_smalls = {None: 0, torch.int8: 2}
if hasattr(torch, "float8_e4m3fn"):
    _smalls[torch.float8_e4m3fn] = 1
_dtypes = {number: dtype for dtype, number in _smalls.items()}
_most = {1: 448.0, 2: 127.0}


class _Id(ctypes.Structure):
    _fields_ = [("bytes", c_char * 128)]


class _Norm(ctypes.Structure):
    """ringo_norm."""

    _fields_ = [
        ("size", c_size_t), ("rows", c_size_t), ("row", c_size_t), ("type", c_int), ("epsilon", c_float), ("plus_one", c_int),
        ("small_type", c_int), ("in_", c_void_p), ("residual", c_void_p), ("bias", c_void_p), ("weight", c_void_p), ("sum", c_void_p),
        ("normed", c_void_p), ("small", c_void_p), ("scale", c_void_p), ("scales", c_void_p),
    ]


def _load():
    """(library, "") or (None, why there is none)."""
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("RINGO_LIBRARY")
    places = [None, named] if named else [None, str(here / "libnccl.so.2"), str(here / "torch_ringo" / "libnccl.so.2"), str(here.parents[1] / "build" / "libnccl.so.2")]
    whys = []
    for place in places:
        try:
            lib = ctypes.CDLL(place)
            for f in (lib.ringo_all_reduce_norm, lib.ringo_reduce_scatter_norm):
                f.argtypes, f.restype = [ctypes.POINTER(_Norm), c_void_p, c_void_p], c_int
            lib.ncclGetLastError.argtypes, lib.ncclGetLastError.restype = [c_void_p], ctypes.c_char_p
            lib.ncclCommInitRank.argtypes = [ctypes.POINTER(c_void_p), c_int, _Id, c_int]
            for f in (lib.ncclCommDestroy, lib.ncclCommAbort):
                f.argtypes = [c_void_p]
            return lib, ""
        except (OSError, AttributeError) as e:
            if place:
                whys.append(str(e))
    return None, "; ".join(whys) or "no libnccl.so.2 of Ringo is loaded, and RINGO_LIBRARY is not set"


class Error(RuntimeError):
    pass


_comms = weakref.WeakValueDictionary()  # by number, since the custom op takes a number


def open(group=None):
    """A Comm of all ranks of a process group, which call this together, after each has made its device current (torch.cuda.set_device)."""
    return Comm(group)


class Comm:
    """A communicator. All ranks call close() in the end; abort() ends operations on all ranks. why is "" if it uses Ringo's kernel."""

    def __init__(self, group=None):
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)
        self._lib, self.why, self._comm = None, "", c_void_p()
        lib, why = _load() if torch.cuda.is_available() else (None, "no GPU")
        whys = [None] * self.size
        dist.all_gather_object(whys, why, group=group)
        self.why = "; ".join("rank %d: %s" % (r, w) for r, w in enumerate(whys) if w)
        self.number = 1 + max(_comms, default=0)
        _comms[self.number] = self
        if self.why:
            return
        self._lib, id, ids = lib, _Id(), [None]
        if self.rank == 0:
            self._check(lib.ncclGetUniqueId(byref(id)))
            ids = [bytes(id)]
        dist.broadcast_object_list(ids, dist.get_global_rank(group, 0) if group is not None else 0, group=group)
        self._check(lib.ncclCommInitRank(byref(self._comm), self.size, _Id.from_buffer_copy(ids[0]), self.rank))

    def _check(self, result):
        if result:
            raise Error("ringo: " + self._lib.ncclGetLastError(None).decode(errors="replace"))

    def all_reduce_norm(self, x, residual=None, weight=None, epsilon=1e-6, bias=None, plus_one=False, small=None, scale=None, out=None):
        """Sums x [..., row] of all ranks, bias and residual, and norms the sum. Returns (normed, sum), both like x; with small (torch.int8
        or float8_e4m3fn) also normed / scale in 8 bits, and the scales of the rows: without scale each row has its own, else there are
        none. out is the tensor for normed, not under torch.compile."""
        return self._norm(False, x, residual, weight, epsilon, bias, plus_one, small, scale, out)

    def reduce_scatter_norm(self, x, residual=None, weight=None, epsilon=1e-6, bias=None, plus_one=False, small=None, scale=None):
        """The same for this rank's share of x [size × rows, row]: results and residual are [rows, row]."""
        return self._norm(True, x, residual, weight, epsilon, bias, plus_one, small, scale)

    def _norm(self, scatters, x, residual, weight, epsilon, bias, plus_one, small, scale, to=None):
        if _compiling():
            out = _norm(x, residual, weight, bias, scale, epsilon, plus_one, _smalls[small], scatters, self.number)
        else:
            out = _norm_to(to, x, residual, weight, bias, scale, epsilon, plus_one, _smalls[small], scatters, self.number)
        return out[:2] if small is None else out

    def abort(self):
        if self._comm:
            self._check(self._lib.ncclCommAbort(self._comm))
            self._comm = c_void_p()

    def close(self):
        if self._comm:
            self._check(self._lib.ncclCommDestroy(self._comm))
            self._comm = c_void_p()


def _compiling():
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and compiler.is_compiling()


def _outputs(x, small, own, share, to=None):
    """The tensors for a call's results: normed, sum, normed in 8 bits, and scales. The last two are empty unless wanted."""
    shape = list(x.shape)
    shape[0] //= share
    eight = shape if small else [0]
    scales = shape[:-1] if small and own else [0]
    if to is None:
        to = x.new_empty(shape)
    elif list(to.shape) != shape or to.dtype != x.dtype or to.device != x.device or not to.is_contiguous():
        raise ValueError("out: want %s of %s on %s, contiguous" % (shape, x.dtype, x.device))
    return (to, x.new_empty(shape), x.new_empty(eight, dtype=_dtypes[small] or torch.int8), x.new_empty(scales, dtype=torch.float32))


def _norm_op(
    x: torch.Tensor, residual: Optional[torch.Tensor], weight: Optional[torch.Tensor], bias: Optional[torch.Tensor],
    scale: Optional[torch.Tensor], epsilon: float, plus_one: bool, small: int, scatters: bool, comm: int,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return _norm_to(None, x, residual, weight, bias, scale, epsilon, plus_one, small, scatters, comm)


def _norm_to(to, x, residual, weight, bias, scale, epsilon, plus_one, small, scatters, comm):
    c = _comms[comm]
    out = _outputs(x, small, scale is None, c.size if scatters else 1, to)
    for what, t, like, dtype in (("residual", residual, out[0].shape, x.dtype), ("weight", weight, x.shape[-1:], x.dtype),
                                 ("bias", bias, x.shape[-1:], x.dtype), ("scale", scale, None, torch.float32)):
        if t is not None and (t.device != x.device or t.dtype != dtype or (t.numel() != 1 if like is None else t.shape != like)):
            raise ValueError("%s: %s of %s on %s, want %s of %s on %s" % (
                what, list(t.shape), t.dtype, t.device, [1] if like is None else list(like), dtype, x.device))
    if c._lib is None or not x.is_cuda:
        return _by_torch(c, out, x, residual, weight, bias, scale, epsilon, plus_one, small, scatters)
    if x.dtype not in _types:
        raise ValueError("x: %s, want float16, bfloat16 or float32" % x.dtype)
    x = x.contiguous()
    if residual is not None:
        residual = residual.contiguous()
    at = lambda t: t.data_ptr() if t is not None and t.numel() else None
    row = x.shape[-1]
    n = _Norm(ctypes.sizeof(_Norm), out[0].numel() // row if row else 0, row, _types[x.dtype], epsilon, plus_one, small, at(x), at(residual),
              at(bias), at(weight), at(out[1]), at(out[0]), at(out[2]), at(scale), at(out[3]))
    f = c._lib.ringo_reduce_scatter_norm if scatters else c._lib.ringo_all_reduce_norm
    c._check(f(byref(n), c._comm, torch.cuda.current_stream(x.device).cuda_stream))
    return out


def _by_torch(c, out, x, residual, weight, bias, scale, epsilon, plus_one, small, scatters):
    """The same by PyTorch, with sums in the order of ranks."""
    all = [torch.empty_like(x) for _ in range(c.size)]
    dist.all_gather(all, x.contiguous(), group=c.group)
    rows = out[0].shape[0]
    sum = torch.zeros(out[0].shape, dtype=torch.float32, device=x.device)
    for t in all:
        sum += (t[c.rank * rows:][:rows] if scatters else t).float()
    for t in (bias, residual):
        if t is not None:
            sum += t.float()
    out[1].copy_(sum)
    v = out[1].float()
    v = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + epsilon)
    if weight is not None:
        v = v * (1 + weight.float() if plus_one else weight.float())
    out[0].copy_(v)
    if small:
        v = out[0].float()
        if scale is None:
            own = (v.abs().amax(-1) / _most[small]).clamp(min=2.0 ** -40)
            out[3].copy_(own)
            v = v / own.unsqueeze(-1)
        else:
            v = v / scale
        v = v.clamp(-_most[small], _most[small])
        out[2].copy_(v.round() if small == 2 else v)
    return out


if hasattr(torch.library, "custom_op"):
    _norm = torch.library.custom_op("ringo::norm", _norm_op, mutates_args=())

    @_norm.register_fake
    def _(x, residual, weight, bias, scale, epsilon, plus_one, small, scatters, comm):
        return _outputs(x, small, scale is None, _comms[comm].size if scatters else 1)
else:
    _norm = _norm_op
