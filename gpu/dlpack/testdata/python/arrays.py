# Arrays of PyTorch and NumPy, and memory of Go, in one process: python3 arrays.py LIBRARY
import ctypes
import gc
import sys

import numpy
import torch

library, api = ctypes.CDLL(sys.argv[1]), ctypes.pythonapi
library.lend.restype = ctypes.c_void_p
library.first.restype = ctypes.c_float
library.twice.restype, library.twice.argtypes = ctypes.c_double, [ctypes.c_void_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
NAME, USED = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"used_dltensor")  # a capsule keeps the pointer


def twice(array):
    capsule = array.__dlpack__()
    total = library.twice(api.PyCapsule_GetPointer(capsule, NAME))
    if total != -1:
        api.PyCapsule_SetName(capsule, USED)  # it was taken, and given back
    return total


tensor = torch.utils.dlpack.from_dlpack(api.PyCapsule_New(library.lend(), NAME, None))
assert tensor.tolist() == [[1, 2, 3], [4, 5, 6]] and library.lent() == 1
tensor[0, 0] = 42
assert library.first() == 42
row = tensor[1]
del tensor
gc.collect()
assert library.lent() == 1, "a part of it still needs the memory"
del row
gc.collect()
assert library.lent() == 0

for array in torch.arange(6, dtype=torch.float32).reshape(2, 3), numpy.arange(6, dtype=numpy.float32):
    assert twice(array) == 15
    assert array.reshape(-1).tolist() == [0, 2, 4, 6, 8, 10]
assert twice(torch.zeros(2, 3).t()) == -1 and twice(torch.zeros(4)[::2]) == -1, "not dense"
assert twice(torch.zeros(4, dtype=torch.float64)) == -2 and twice(torch.zeros(0)) == 0
print("ok")
