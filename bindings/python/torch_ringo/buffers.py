"""Tensors as memory for the library to read and write."""

import torch
from torch.distributed import ReduceOp

from . import library

_TYPES = {
    torch.int8: library.INT8, torch.uint8: library.UINT8, torch.int32: library.INT32, torch.int64: library.INT64,
    torch.float16: library.FLOAT16, torch.float32: library.FLOAT32, torch.float64: library.FLOAT64,
    torch.bfloat16: library.BFLOAT16,
}
for _name, _type in [("uint32", library.UINT32), ("uint64", library.UINT64), ("float8_e4m3fn", library.FLOAT8_E4M3),
                     ("float8_e5m2", library.FLOAT8_E5M2)]:
    if hasattr(torch, _name):
        _TYPES[getattr(torch, _name)] = _type
_WIDER = {getattr(torch, n): torch.int32 for n in ("int16", "uint16") if hasattr(torch, n)}

_OPS = [(getattr(ReduceOp, name), number) for name, number in [
    ("SUM", library.SUM), ("AVG", library.AVG), ("MAX", library.MAX), ("MIN", library.MIN), ("PRODUCT", library.PROD),
    ("BAND", library.BIT_AND), ("BOR", library.BIT_OR), ("BXOR", library.BIT_XOR)] if hasattr(ReduceOp, name)]
_OF_BOOL = {library.SUM: library.MAX, library.PROD: library.MIN, library.BIT_AND: library.MIN, library.BIT_OR: library.MAX}


def check(tensor):
    if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise ValueError("ringo: want a dense tensor on the CPU, not %s" % (
            "%s on %s" % (tensor.layout, tensor.device) if isinstance(tensor, torch.Tensor) else type(tensor)))


def one(tensors):
    """The tensor of a list of one, which torch passes for a tensor."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError("ringo: want one tensor, not %d" % len(tensors))
    return tensors[0]


def plain(tensor):
    """The tensor, or a copy whose elements lie one after the other."""
    if tensor.is_complex() and tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor.contiguous()


def room(tensor):
    """The tensor if its elements lie one after the other, else new memory like it for a result."""
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()


def exact(tensor):
    """Whether the library has the tensor's type."""
    return tensor.dtype in _TYPES


def units(tensor):
    """(number of a type of the library, units of it in an element) by which a tensor is moved: its own, else one of fewer bytes."""
    if exact(tensor):
        return _TYPES[tensor.dtype], 1
    if tensor.is_complex() and tensor.element_size() > 4:
        return (library.FLOAT32, library.FLOAT64)[tensor.element_size() // 16], 2
    return library.UINT8, tensor.element_size()


def alike(input, output):
    if input.dtype != output.dtype:
        raise ValueError("ringo: the input has elements of %s, and the output of %s" % (input.dtype, output.dtype))


def op_of(op):
    for known, number in _OPS:
        if op == known:
            return number
    raise ValueError("ringo: no operator %s" % (op,))


def reducible(tensor, op):
    """(tensor, number of its type, number of the operator) for the reduction of a plain tensor. The result may share the tensor's memory."""
    op = op_of(op)
    dtype = tensor.dtype
    if dtype in _TYPES:
        if op >= library.BIT_AND and (dtype.is_floating_point):
            raise ValueError("ringo: bitwise operators are for integers, not %s" % dtype)
        return tensor, _TYPES[dtype], op
    if dtype == torch.bool:
        if op == library.AVG:
            raise ValueError("ringo: no average of bool")
        return tensor, library.UINT8, _OF_BOOL.get(op, op)
    if dtype in _WIDER:
        return tensor.to(_WIDER[dtype]), _TYPES[_WIDER[dtype]], op
    if tensor.is_complex():
        if op not in (library.SUM, library.AVG):
            raise ValueError("ringo: complex numbers are summed or averaged by parts, nothing else")
        return reducible(torch.view_as_real(tensor), ReduceOp.SUM)[:2] + (op,)
    raise ValueError("ringo: no reduction of %s" % dtype)


def joined(tensors):
    """Plain memory for tensors one after the other: (first tensor, False) if they lie so already, else (new memory, True)."""
    first = tensors[0]
    at = first.data_ptr()
    for t in tensors:
        if not t.is_contiguous() or t.is_conj() or t.is_neg() or t.dtype != first.dtype or t.data_ptr() != at:
            return torch.empty(sum(map(bytes_of, tensors)) // first.element_size(), dtype=first.dtype), True
        at += bytes_of(t)
    return first, False


def fill(memory, tensors):
    """Copies tensors into new memory of joined."""
    at = 0
    for t in tensors:
        memory[at:at + t.numel()].copy_(t.reshape(-1))
        at += t.numel()


def spread(memory, tensors):
    """Copies new memory of joined into tensors."""
    at = 0
    for t in tensors:
        t.copy_(memory[at:at + t.numel()].view(t.shape))
        at += t.numel()
