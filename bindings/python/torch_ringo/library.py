"""The functions of ringo.h (cmd/libnccl) by ctypes."""

import ctypes
import os
import pathlib
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

OK, IN_PROGRESS, INVALID, TIMEOUT, FAILED = range(5)
(BARRIER, ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, SEND, RECV,
 ALL_GATHERV, ALL_TO_ALLV) = range(1, 14)
(INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2) = range(1, 13)
SUM, PROD, MAX, MIN, AVG, BIT_AND, BIT_OR, BIT_XOR = range(8)
ANY = -1
ID_BYTES = 128


class Call(ctypes.Structure):
    """ringo_host_call."""

    _fields_ = [
        ("kind", c_int), ("type", c_int), ("op", c_int), ("peer", c_int), ("in_", c_void_p), ("out", c_void_p),
        ("count", c_size_t), ("in_counts", POINTER(c_int64)), ("out_counts", POINTER(c_int64)), ("timeout", c_int64),
    ]


def find():
    """The library's file: RINGO_LIBRARY, or else beside this file, where pip installs it, or else in the repository's build."""
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("RINGO_LIBRARY")
    places = [pathlib.Path(named)] if named else [here / "libnccl.so.2", here.parents[2] / "build" / "libnccl.so.2"]
    for place in places:
        if place.exists():
            return str(place)
    raise ImportError("torch_ringo: no libnccl.so.2 at " + " or ".join(map(str, places))
                      + ": build it with scripts/libnccl, or name it with RINGO_LIBRARY")


_lib = ctypes.CDLL(find())
_lib.ringo_host_free.argtypes, _lib.ringo_host_free.restype = [c_void_p], None


class Error(RuntimeError):
    """An error of Ringo; result is one of the results above."""

    def __init__(self, result, text):
        super().__init__(text)
        self.result = result


def _function(name, *types):
    f = getattr(_lib, "ringo_host_" + name)
    f.argtypes, f.restype = [*types, POINTER(c_void_p)], c_int

    def call(*arguments):
        error = c_void_p()
        result = f(*arguments, byref(error))
        if result > IN_PROGRESS:
            text = ctypes.string_at(error.value).decode(errors="replace") if error.value else "result %d" % result
            _lib.ringo_host_free(error)
            raise Error(result, text)
        return result

    return call


_new_id = _function("new_id", c_char_p, c_char_p)
_open = _function("open", c_char_p, c_int, c_int, c_int64, POINTER(c_void_p))
do = _function("do", c_void_p, POINTER(Call))
_start = _function("start", c_void_p, POINTER(Call), POINTER(c_void_p))
_wait = _function("wait", c_void_p, c_int64, POINTER(c_int))
failure = _function("failure", c_void_p)
abort = _function("abort", c_void_p, c_char_p)
close = _function("close", c_void_p)
_mail_open = _function("mail_open", c_void_p, POINTER(c_void_p))
mail_to = _function("mail_to", c_void_p, c_int, c_char_p)
mail_from = _function("mail_from", c_void_p, c_int, c_char_p)
_mail_send = _function("mail_send", c_void_p, c_int, c_int64, c_void_p, c_size_t, POINTER(c_void_p))
_mail_recv = _function("mail_recv", c_void_p, c_int, c_int64, c_void_p, c_size_t, POINTER(c_void_p))
mail_close = _function("mail_close", c_void_p)


def _handle(f, *arguments):
    h = c_void_p()
    f(*arguments, byref(h))
    return h


def begin():
    """Starts the library, which its first call would do otherwise."""
    try:
        failure(None)
    except Error:
        pass  # None is no communicator


def new_id(address=None):
    room = ctypes.create_string_buffer(ID_BYTES)
    _new_id(address, room)
    return room.raw


def open_comm(id, rank, size, timeout):
    return _handle(_open, id, rank, size, timeout)


def start(comm, call):
    return _handle(_start, comm, byref(call))


def wait(pending, timeout):
    """(whether the operation has ended within timeout ns, rank whose message was received or ANY)."""
    source = c_int(ANY)
    return _wait(pending, timeout, byref(source)) == OK, source.value


def mail_open(comm):
    return _handle(_mail_open, comm)


def mail_send(mail, peer, tag, data, size):
    return _handle(_mail_send, mail, peer, tag, data, size)


def mail_recv(mail, peer, tag, data, size):
    return _handle(_mail_recv, mail, peer, tag, data, size)
