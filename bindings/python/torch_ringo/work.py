"""Operations under way, as torch's Work."""

import re
import threading

import torch
from torch._C._distributed_c10d import Work as TorchWork

from . import library
from .buffers import exact

try:
    from torch.distributed import DistBackendError
except ImportError:  # before 2.0
    DistBackendError = RuntimeError


def raised(error, tensors=()):
    """torch's exception for an error of Ringo, in elements of torch. tensors are the operation's on this rank."""
    text = str(error)
    if tensors and isinstance(tensors[0], torch.Tensor):
        first = tensors[0]
        text = re.sub(r"(\d+) bytes, and the memory for it (\d+)", lambda m: "%s bytes, and the tensor %s (%d elements of %s)" % (
            m[1], m[2], first.numel(), first.dtype), text)
        if "ranks disagree" in text and not exact(first):
            text += " (on this rank elements of %s)" % first.dtype
    if error.result == library.TIMEOUT:  # programs look for torch's word "timeout"
        return DistBackendError("ringo: a timeout has ended it: %s" % text)
    return (ValueError if error.result == library.INVALID else DistBackendError)(text)


class Work(TorchWork):
    """An operation that was started. pending is its handle, or None if it has ended. kept is the tensors to keep alive until the end.
    after is called at the end and copies the results to where they belong. ordered says that it ends after those before it."""

    def __init__(self, group, pending, kept, result, after=None, ordered=False):
        super().__init__()
        self.ordered = ordered
        self._group, self._pending, self._kept, self._result, self._after = group, pending, kept, result, after
        self._lock = threading.Lock()
        self._error = None
        self._source = library.ANY
        self._future = None
        self._done = False
        self.heard = False  # whether a caller has waited, or has taken the future
        if pending is None:
            self._end()

    def _end(self, error=None):
        if error is None and self._after is not None:
            with torch.no_grad():
                self._after()
        self._error, self._kept, self._after, self._pending = error, None, None, None
        self._group = None  # so that a group that torch drops, as destroy_process_group may, leaves at once
        self._done = True

    def _look(self, timeout):
        """Whether the operation has ended, after timeout ns at most; -1 waits without limit. The caller holds the lock."""
        if not self._done:
            try:
                ended, self._source = library.wait(self._pending, timeout)
                if ended:
                    self._end()
            except library.Error as e:
                self._end(raised(e, self._result))
        return self._done

    def wait(self, timeout=None):
        self.heard = True
        if not self._done:
            limit = int(timeout.total_seconds() * 1e9) if timeout else 0
            with self._lock:
                if not self._look(limit if limit > 0 else -1):
                    raise DistBackendError("the operation has not ended within %s" % timeout)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        if not self._done and self._lock.acquire(blocking=False):
            try:
                self._look(0)
            finally:
                self._lock.release()
        return self._done

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error

    def result(self):
        return self._result

    def source_rank(self):
        return self._source

    _source_rank = source_rank

    def get_future(self):
        self.heard = True
        with self._lock:
            if self._future is not None:
                return self._future
            # An error has to be one for readers in C++ too, such as DDP, and Future.set_exception sets a value of
            # Python's there. What a callback raises is an error for all.
            ended = torch.futures.Future()
            self._future = ended.then(lambda _: self._value())
            group = self._group
        if group is None:  # the operation has ended
            ended.set_result(None)
        else:
            group._watch(self, ended)
        return self._future

    def _value(self):
        self.wait()
        return self._result


class Several(Work):
    """Several operations as one."""

    def __init__(self, group, works, result, after=None):
        self._works = works
        super().__init__(group, 0, works, result, after)

    def _look(self, timeout):
        try:
            for w in self._works:
                if timeout == 0:
                    if not w.is_completed():
                        return False
                w.wait()
            self._end()
        except Exception as e:
            self._end(e)
        return True
