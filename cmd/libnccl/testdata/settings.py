"""The environment of Python's os.environ counts for each communicator of nccl.h and of ringo.h: settings.py LIBRARY LIBRARY.PY"""

import ctypes
import importlib.util
import os
import sys

nccl = ctypes.CDLL(sys.argv[1])
nccl.ncclGetLastError.restype = ctypes.c_char_p
spec = importlib.util.spec_from_file_location("library", sys.argv[2])
library = importlib.util.module_from_spec(spec)
spec.loader.exec_module(library)


def init_all(n=1):
    comms = (ctypes.c_void_p * n)()
    if nccl.ncclCommInitAll(comms, n, None):
        raise RuntimeError(nccl.ncclGetLastError(None).decode())
    for c in comms:
        assert nccl.ncclCommDestroy(ctypes.c_void_p(c)) == 0


def open_comm():
    library.close(library.open_comm(library.new_id(b"127.0.0.1:0"), 0, 1, 10 ** 10))


def refused(word):
    for f in init_all, open_comm:
        try:
            f()
        except RuntimeError as e:
            assert word in str(e), e
        else:
            raise AssertionError("%s was not refused" % word)


refused("before")
os.environ["RINGO_ALGO"] = "later"
refused("later")
del os.environ["RINGO_ALGO"]
init_all()
open_comm()
os.environ["NCCL_RAS_ADDR"] = "later:1"
init_all()
init_all()
os.environ["NCCL_DEBUG"] = "INFO"
init_all(2)
sys.stdout.flush()
os.write(1, b"ok\n")
