"""The process group of Ringo."""

import atexit
import collections
import ctypes
import datetime
import os
import queue
import sys
import threading
import time
import weakref

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup as TorchProcessGroup

from . import devices, library
from .buffers import alike, bytes_of, check, fill, joined, one, op_of, plain, reducible, room, spread, units
from .work import DistBackendError, Several, Work, raised

_open_groups = weakref.WeakSet()
_TORCH, _OURS = dist.distributed_c10d.__file__, (__file__, devices.__file__)
_MOST_UNHEARD = 256  # operations that are held after their end though nobody has waited for them


def _at_once(opts):
    """Whether torch will wait for the operation before it does anything else. Then no other thread need carry it out: handing a small
    operation over costs more than the operation. Torch says so in opts; before 2.7 only a variable of torch's calling function does."""
    if hasattr(opts, "asyncOp"):
        return not opts.asyncOp
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in _OURS:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == _TORCH and frame.f_locals.get("async_op") is False


@atexit.register
def _close_all():
    for group in list(_open_groups):
        try:
            group.shutdown()
        except Exception as e:
            print("torch_ringo: an operation has failed for which nobody has waited:", e, file=sys.stderr)


def _leave_to_parent():
    """In the child of a fork, such as a data loader's worker, open groups stay the parent's."""
    for group in list(_open_groups):
        group._closed = True


os.register_at_fork(after_in_child=_leave_to_parent)


# Prefix of keys in the store. After a restart torchrun's new processes have the store of the old ones, since torch 2.4
# under the same prefix.
_KEYS = "ringo/%s/" % os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


class ProcessGroup(TorchProcessGroup):
    """One rank of a torch process group on host memory. Collectives are carried out in the order of their calls; messages
    (send, recv) have no order with collectives. Errors are torch's exceptions with Ringo's text. A tensor that is not
    contiguous costs a copy. others names torch's backends for other devices, such as {"cuda": "nccl"}; each is opened when the
    first tensor of its device comes. If others is None, the group's name has them, since torch 2.1."""

    def __init__(self, store, rank, size, timeout=datetime.timedelta(minutes=30), others=None):
        super().__init__(rank, size)
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._live = collections.deque()  # operations that may be under way, or that nobody has waited for
        self._lock = threading.Lock()
        self._mail = self._watcher = self._connector = None
        self._lines, self._wanted, self._closed = set(), set(), False
        self._barriers = 0
        self._others, self._beside = others, {}
        self._group_name = self._group_desc = ""
        self._coalesced = None  # the operations since _start_coalescing
        try:
            id = self._meeting()
            self._comm = library.open_comm(id, rank, size, self._ns(timeout))
        except library.Error as e:
            raise raised(e) from None
        _open_groups.add(self)

    def _meeting(self):
        """The ID. Rank 0 makes it and puts it into the store, after a first byte: "=" for an ID, "!" for an error."""
        if self._rank == 0:
            try:
                id = library.new_id()
            except library.Error as e:
                self._put(_KEYS + "id", "!" + str(e))
                raise
            self._put(_KEYS + "id", "=" + id.hex())
            return id
        library.begin()  # takes milliseconds, while rank 0 makes the ID
        text = self._fetch(_KEYS + "id")
        if text[0] == "!":
            raise library.Error(library.FAILED, text[1:])
        return bytes.fromhex(text[1:])

    # Messages between ranks by the store. Each key has a counter beside it, since all stores can read a counter without
    # waiting.

    def _put(self, key, text):
        self._store.set(key, text)
        self._store.add(key + "/is", 1)

    def _has(self, key):
        return self._store.add(key + "/is", 0) > 0

    def _fetch(self, key):
        """Waits for a key and returns its text."""
        store = self._store
        while isinstance(store, dist.PrefixStore) and hasattr(store, "underlying_store"):
            store = store.underlying_store
        if isinstance(store, dist.FileStore):  # its get looks only every 10 ms
            for pause in (0.0003, 0.0003, 0.0006, 0.001, 0.002, 0.004):
                if self._has(key):
                    break
                time.sleep(pause)
        return self._store.get(key).decode()

    @staticmethod
    def _ns(timeout):
        seconds = timeout.total_seconds() if timeout is not None else 0
        return int(seconds * 1e9) if seconds > 0 else 0

    # Attributes of a group that torch reads.

    def getBackendName(self):
        return "ringo"

    def name(self):
        return "ringo"

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    getRank, getSize = rank, size

    # The name and the description that torch gives a group since 2.1. Torch keeps them in the group's backends, which
    # this group has not.

    def _set_group_name(self, name):
        self._group_name = name

    def _set_group_desc(self, text):
        self._group_desc = text

    def getGroupName(self):
        return self._group_name

    def getGroupDesc(self):
        return self._group_desc

    group_name, group_desc = property(getGroupName), property(getGroupDesc)

    def _named(self):
        """The backends for other devices, by device."""
        if self._others is None:
            return {d: b for d, b in devices.configured(self).items() if d != "cpu" and b != "ringo"}
        return self._others

    def beside(self, device):
        """The group for tensors on a device, or None."""
        with self._lock:
            if device not in self._beside and not self._closed:
                backend = self._named().get(device)
                self._beside[device] = backend and devices.open_native(
                    backend, dist.PrefixStore(device, self._store), self._rank, self._size, self._timeout)
            return self._beside.get(device)

    def _get_backend(self, device):
        return self._elsewhere(device) or self

    @property
    def _device_types(self):
        return [torch.device(d) for d in ("cpu", *self._named())]

    def _set_sequence_number_for_group(self):
        pass

    def abort(self, reason="the program has aborted the process group"):
        """Ends all operations on all ranks."""
        if not self._closed:
            library.abort(self._comm, reason.encode())
            self._end_beside("abort")

    def _end_beside(self, how):
        for other in filter(None, self._beside.values()):
            getattr(other, how, lambda: None)()  # groups of torch have these since 2.4

    def shutdown(self):
        """Leaves the group. Operations under way are aborted. Raises the error of one that has failed, if nobody has waited for it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        unheard = next((w for w in self._live if not w.heard and w.is_completed() and w.exception() is not None), None)
        if any(not w.is_completed() for w in self._live):
            library.abort(self._comm, b"the process group was destroyed with operations under way")
        try:
            if self._mail:
                library.mail_close(self._mail)
            library.close(self._comm)
        except library.Error:
            pass  # the operations have raised it
        if self._watcher:
            self._watcher.stop()
        self._end_beside("shutdown")
        if unheard is not None:
            unheard.wait()

    def __del__(self):
        if not getattr(self, "_closed", True) and hasattr(self, "_comm"):
            self.shutdown()

    # Start of operations.

    def _keep(self, work):
        """Holds an operation until it has ended and its caller knows. A caller in C++, such as DDP, holds only torch's half of the
        object before torch 2.1, and that half alone would wait for ever."""
        live = self._live
        while live and (live[0].heard or len(live) > _MOST_UNHEARD) and live[0].is_completed():
            live.popleft()
        live.append(work)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _elsewhere(self, device):
        """The group for a device other than the CPU, else None. torch 1.13 passes a list of requests in place of a device: None too."""
        return self.beside(device.type) if isinstance(device, torch.device) and device.type != "cpu" else None

    def _start_coalescing(self, device=None):
        other = self._elsewhere(device)
        if other is not None:
            return other._start_coalescing()
        self._coalesced = []

    def _end_coalescing(self, device=None):
        other = self._elsewhere(device)
        if other is not None:
            return other._end_coalescing()
        works, self._coalesced = self._coalesced, None
        return self._several(works, [])

    start_coalescing, end_coalescing = _start_coalescing, _end_coalescing

    def _begin(self, kept, result, kind, type=library.UINT8, op=0, peer=0, source=None, to=None, count=0,
               in_counts=None, out_counts=None, after=None, opts=None):
        call = library.Call(kind, type, op, peer, source, to, count, None, None, 0)
        for name, counts in (("in_counts", in_counts), ("out_counts", out_counts)):
            if counts is not None:
                setattr(call, name, (ctypes.c_int64 * len(counts))(*counts))
        if opts is not None:
            limit = opts.timeout.total_seconds()  # negative if the caller has given none
            if limit > 0 and limit != self._timeout.total_seconds():
                call.timeout = int(limit * 1e9)
        try:
            if self._coalesced is None and _at_once(opts):
                library.do(self._comm, call)
                return Work(self, None, None, result, after)
            return self._keep(Work(self, library.start(self._comm, call), kept, result, after, ordered=True))
        except library.Error as e:
            raise raised(e, result) from None

    def _watch(self, work, ended):
        """Has a thread complete a future when the work ends. A message waits for itself alone."""
        if not work.ordered:
            threading.Thread(target=_complete, args=(work, ended), name="ringo future", daemon=True).start()
            return
        with self._lock:
            if self._watcher is None:
                self._watcher = _Futures()
        self._watcher.add((work, ended))

    def _several(self, works, result):
        return self._keep(Several(self, works, result))

    # Collectives.

    def allreduce(self, tensors, opts=dist.ReduceOp.SUM):
        tensor = one(tensors)
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.sparse_coo:
            return self._sum_sparse(tensor, opts)
        check(tensor)
        return self._reduce(library.ALL_REDUCE, tensor, tensor, opts)

    def _sum_sparse(self, tensor, opts):
        """The sum of sparse tensors: all ranks get all elements, with their indices. The caller waits for the first collective, of the
        ranks' numbers of elements."""
        if op_of(getattr(opts, "reduceOp", opts)) != library.SUM:
            raise ValueError("ringo: sparse tensors are summed, nothing else")
        mine = tensor.detach().coalesce()
        counts = torch.zeros(self._size, dtype=torch.int64)
        self._allgather_base(counts, torch.tensor([mine._nnz()])).wait()
        own = (mine.indices().t().contiguous(), mine.values())
        all = [[torch.empty((n, *t.shape[1:]), dtype=t.dtype) for n in counts.tolist()] for t in own]

        def after():
            places, values = map(torch.cat, all)
            tensor.copy_(torch.sparse_coo_tensor(places.t(), values, tensor.shape).coalesce())

        return self._keep(Several(self, [self.allgather([parts], [t], _options(opts)) for parts, t in zip(all, own)], [tensor], after))

    def _reduce(self, kind, source, to, opts, count=None):
        """A reduction of source into to, which may be the same tensor, or None if this rank gets no result."""
        flat, type, op = reducible(plain(source), getattr(opts, "reduceOp", opts))
        result = [to if to is not None else source]
        root = getattr(opts, "rootRank", 0)
        count = flat.numel() if count is None else count * (2 if source.is_complex() else 1)
        if to is None:
            return self._begin(flat, result, kind, type, op, root, flat.data_ptr(), None, count, opts=_options(opts))
        if to is source:
            out, into = flat, None
            if flat.data_ptr() != to.data_ptr():
                into = flat
        else:
            out = reducible(room(to), getattr(opts, "reduceOp", opts))[0]
            into = out if out.data_ptr() != to.data_ptr() else None

        def after():
            to.copy_(torch.view_as_complex(into) if to.is_complex() else into)

        return self._begin((flat, out, to), result, kind, type, op, root, flat.data_ptr(), out.data_ptr(), count,
                           after=after if into is not None else None, opts=_options(opts))

    def allreduce_coalesced(self, tensors, opts=None):
        return self._several([self.allreduce([t], opts) for t in tensors], tensors)

    def reduce(self, tensors, opts):
        tensor = one(tensors)
        check(tensor)
        return self._reduce(library.REDUCE, tensor, tensor if opts.rootRank == self._rank else None, opts)

    def broadcast(self, tensors, opts):
        tensor = one(tensors)
        check(tensor)
        if opts.rootRank == self._rank:
            memory = plain(tensor)
            after = None
        else:
            memory = room(tensor)
            after = (lambda: tensor.copy_(memory)) if memory is not tensor else None
        at = memory.data_ptr()
        type, n = units(memory)
        return self._begin((tensor, memory), [tensor], library.BROADCAST, type, peer=opts.rootRank, source=at, to=at,
                           count=n * memory.numel(), after=after, opts=opts)

    def allgather(self, outputs, inputs, opts=None):
        tensor, parts = one(inputs), outputs if isinstance(outputs[0], torch.Tensor) else one(outputs)
        self._check_list(parts, self._size)
        check(tensor)
        memory, copies = joined(parts)
        after = (lambda: spread(memory, parts)) if copies else None
        return self._gathered(tensor, memory, [t.numel() for t in parts], parts, after, opts)

    def _gathered(self, tensor, memory, sizes, result, after, opts):
        source = plain(tensor)
        alike(tensor, memory)
        if source.numel() != sizes[self._rank]:
            raise ValueError("ringo: the tensor has %d elements, and the output for this rank %d" % (source.numel(), sizes[self._rank]))
        type, n = units(source)
        if len(set(sizes)) == 1:
            return self._begin((source, memory), result, library.ALL_GATHER, type, source=source.data_ptr(), to=memory.data_ptr(),
                               count=n * sizes[0], after=after, opts=opts)
        return self._begin((source, memory), result, library.ALL_GATHERV, type, source=source.data_ptr(), to=memory.data_ptr(),
                           out_counts=[n * x for x in sizes], after=after, opts=opts)

    def _allgather_base(self, output, input, opts=None):
        check(output)
        check(input)
        if output.numel() != self._size * input.numel():
            raise ValueError("ringo: the output wants %d times the elements of the input" % self._size)
        memory = room(output)
        after = (lambda: output.copy_(memory)) if memory is not output else None
        return self._gathered(input, memory, [input.numel()] * self._size, [output], after, opts)

    all_gather_single = _allgather_base

    def allgather_coalesced(self, outputs, inputs, opts=None):
        return self._several([self.allgather([[o[i] for o in outputs]], [t], opts) for i, t in enumerate(inputs)], outputs)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._several([self._allgather_base(o, i, opts) for o, i in zip(outputs, inputs)], outputs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(self, outputs, inputs, opts):
        tensor = one(inputs)
        check(tensor)
        source = plain(tensor)
        memory, after, parts = None, None, []
        if opts.rootRank == self._rank:
            parts = one(outputs)
            self._check_list(parts, self._size, alike=tensor)
            memory, copies = joined(parts)
            after = (lambda: spread(memory, parts)) if copies else None
        type, n = units(source)
        return self._begin((source, memory), parts or [tensor], library.GATHER, type, peer=opts.rootRank, source=source.data_ptr(),
                           to=memory.data_ptr() if memory is not None else None, count=n * source.numel(), after=after, opts=opts)

    def scatter(self, outputs, inputs, opts):
        tensor = one(outputs)
        check(tensor)
        memory, out = None, room(tensor)
        if opts.rootRank == self._rank:
            parts = one(inputs)
            self._check_list(parts, self._size, alike=tensor)
            memory = self._joined_from(parts)
        type, n = units(out)
        return self._begin((memory, out, tensor), [tensor], library.SCATTER, type, peer=opts.rootRank,
                           source=memory.data_ptr() if memory is not None else None, to=out.data_ptr(), count=n * out.numel(),
                           after=(lambda: tensor.copy_(out)) if out is not tensor else None, opts=opts)

    @staticmethod
    def _joined_from(parts):
        memory, copies = joined(parts)
        if copies:
            with torch.no_grad():
                fill(memory, parts)
        return memory

    @staticmethod
    def _check_list(tensors, size, alike=None):
        if len(tensors) != size:
            raise ValueError("ringo: want %d tensors, not %d" % (size, len(tensors)))
        for t in tensors:
            check(t)
            if t.dtype != tensors[0].dtype or alike is not None and (t.dtype != alike.dtype or t.numel() != alike.numel()):
                raise ValueError("ringo: the tensors of a list have to be alike")

    def reduce_scatter(self, outputs, inputs, opts=dist.ReduceOp.SUM):
        tensor, parts = one(outputs), inputs if isinstance(inputs[0], torch.Tensor) else one(inputs)
        self._check_list(parts, self._size)
        check(tensor)
        if len({t.numel() for t in parts}) == 1:
            memory = torch.cat([t.reshape(-1) for t in parts])
            return self._reduce(library.REDUCE_SCATTER, memory, tensor, opts, tensor.numel())
        memory = torch.cat([t.reshape(-1) for t in parts])
        begin = sum(t.numel() for t in parts[:self._rank])
        work = self._reduce(library.ALL_REDUCE, memory, memory, opts)
        before = work._after

        def after():
            if before is not None:
                before()
            tensor.copy_(memory[begin:begin + tensor.numel()].view(tensor.shape))

        return self._then(work, after, [tensor])

    @staticmethod
    def _then(work, after, result):
        with work._lock:
            work._result = result
            if work._done:
                with torch.no_grad():
                    after()
            else:
                work._after = after
        return work

    def _reduce_scatter_base(self, output, input, opts=dist.ReduceOp.SUM):
        check(output)
        check(input)
        if input.numel() != self._size * output.numel():
            raise ValueError("ringo: the input wants %d times the elements of the output" % self._size)
        return self._reduce(library.REDUCE_SCATTER, input, output, opts, output.numel())

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=dist.ReduceOp.SUM):
        return self._several([self._reduce_scatter_base(o, i, opts) for o, i in zip(outputs, inputs)], outputs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def alltoall_base(self, output, input, output_sizes, input_sizes, opts=None):
        check(output)
        check(input)
        source, memory = plain(input), room(output)
        return self._exchange(source, memory, self._rows(input, input_sizes), self._rows(output, output_sizes), [output],
                              (lambda: output.copy_(memory)) if memory is not output else None, opts)

    all_to_all_single = alltoall_base

    def _rows(self, tensor, sizes):
        """The number of elements for each rank, of a tensor that is divided by rows."""
        rows = tensor.shape[0] if tensor.dim() else 0
        if not sizes:
            if rows % self._size:
                raise ValueError("ringo: %d rows for %d ranks" % (rows, self._size))
            sizes = [rows // self._size] * self._size
        if len(sizes) != self._size or sum(sizes) != rows:
            raise ValueError("ringo: split sizes %s for %d rows and %d ranks" % (list(sizes), rows, self._size))
        row = tensor.numel() // rows if rows else 0
        return [n * row for n in sizes]

    def alltoall(self, outputs, inputs, opts=None):
        self._check_list(outputs, self._size)
        self._check_list(inputs, self._size)
        source = self._joined_from(inputs)
        memory, copies = joined(outputs)
        return self._exchange(source, memory, [t.numel() for t in inputs], [t.numel() for t in outputs], outputs,
                              (lambda: spread(memory, outputs)) if copies else None, opts)

    def _exchange(self, source, memory, give, take, result, after, opts):
        alike(source, memory)
        type, n = units(source)
        return self._begin((source, memory), result, library.ALL_TO_ALLV, type, source=source.data_ptr(), to=memory.data_ptr(),
                           in_counts=[n * x for x in give], out_counts=[n * x for x in take], after=after, opts=opts)

    def barrier(self, opts=None):
        other = self._elsewhere(getattr(opts, "device", None))  # since torch 2.5
        if other is not None:
            return other.barrier(opts)
        return self._begin(None, [], library.BARRIER, opts=opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier whose error names the ranks that have not come within timeout. The group stays usable after the error."""
        limit = (timeout or self._timeout).total_seconds()
        self._barriers += 1
        key = _KEYS + "barrier/%d/" % self._barriers
        end = time.monotonic() + limit
        self._store.add(key + str(self._rank), 1)
        missing = list(range(self._size))
        pause = 0.0005
        if self._rank == 0:
            while missing and time.monotonic() < end:
                missing = [r for r in missing if self._store.add(key + str(r), 0) == 0]
                if missing:
                    time.sleep(pause)
                    pause = min(2 * pause, 0.02)
            text = ""
            if missing:
                text = "ringo: monitored_barrier: rank%s %s did not come within %gs" % (
                    "s" if len(missing) > 1 else "", ", ".join(map(str, missing)), limit)
            self._put(key + "verdict", "=" + text)
        else:
            while not self._has(key + "verdict"):
                if time.monotonic() > end + 1:  # rank 0 waits until end itself
                    raise DistBackendError("ringo: monitored_barrier: rank 0 did not come within %gs" % limit)
                time.sleep(pause)
                pause = min(2 * pause, 0.02)
            text = self._store.get(key + "verdict").decode()[1:]
        if text:
            raise DistBackendError(text)

    # Messages.

    def send(self, tensors, peer, tag=0):
        tensor = one(tensors)
        check(tensor)
        source = plain(tensor)
        try:
            self._line_to(peer)
            pending = library.mail_send(self._mail, peer, tag, source.data_ptr(), bytes_of(source))
        except library.Error as e:
            raise raised(e) from None
        return self._keep(Work(self, pending, source, [tensor]))

    def recv(self, tensors, peer, tag=0):
        return self._receive(one(tensors), peer, tag, {peer})

    def recv_anysource(self, tensors, tag=0):
        return self._receive(one(tensors), library.ANY, tag, set(range(self._size)) - {self._rank})

    def _receive(self, tensor, peer, tag, sources):
        check(tensor)
        out = room(tensor)
        try:
            self._lines_from(sources)
            pending = library.mail_recv(self._mail, peer, tag, out.data_ptr(), bytes_of(out))
        except library.Error as e:
            raise raised(e) from None
        return self._keep(Work(self, pending, (out, tensor), [tensor], (lambda: tensor.copy_(out)) if out is not tensor else None))

    def _open_mail(self):
        if self._mail is None:
            self._mail = library.mail_open(self._comm)

    def _line_to(self, peer):
        with self._lock:
            self._open_mail()
            if ("to", peer) in self._lines or peer == self._rank:
                return
            id = library.new_id()
            library.mail_to(self._mail, peer, id)
            self._lines.add(("to", peer))
        self._put(_KEYS + "line/%d/%d" % (self._rank, peer), id.hex())

    def _lines_from(self, sources):
        """Has a thread open the lines from sources as soon as these have made them. The caller must not wait for that, as a source
        may wait for the caller."""
        with self._lock:
            self._open_mail()
            self._wanted |= {s for s in sources if ("from", s) not in self._lines and s != self._rank}
            if self._wanted and self._connector is None:
                self._connector = threading.Thread(target=_connect, args=(weakref.ref(self),), name="ringo lines", daemon=True)
                self._connector.start()

    def _find_lines(self):
        """How many of the wanted lines were there and were opened, False when there is nothing more to do."""
        with self._lock:
            wanted = [] if self._closed else list(self._wanted)
        found = 0
        try:
            for peer in wanted:
                key = _KEYS + "line/%d/%d" % (peer, self._rank)
                if self._has(key):
                    id = bytes.fromhex(self._store.get(key).decode())
                    with self._lock:
                        if not self._closed:
                            library.mail_from(self._mail, peer, id)
                        self._lines.add(("from", peer))
                        self._wanted.discard(peer)
                    found += 1
        except RuntimeError:  # the store is gone, or the mail; messages end by their deadlines
            wanted = []
        with self._lock:
            if wanted and self._wanted and not self._closed:
                return found
            self._connector = None
            return False


for _name in ("allreduce allreduce_coalesced reduce broadcast allgather _allgather_base all_gather_single allgather_coalesced "
              "allgather_into_tensor_coalesced all_gather_single_coalesced gather scatter reduce_scatter _reduce_scatter_base "
              "reduce_scatter_single reduce_scatter_tensor_coalesced reduce_scatter_single_coalesced alltoall_base all_to_all_single alltoall "
              "send recv recv_anysource").split():
    setattr(ProcessGroup, _name, devices.by_device(_name, getattr(ProcessGroup, _name)))


def _options(opts):
    return opts if hasattr(opts, "timeout") else None


class _Futures:
    """Completes the futures of a group's collectives, in their order. A callback may wait for a later one, as PowerSGD's do, so while a
    thread is in callbacks another one is there for what comes."""

    def __init__(self):
        self._queue, self._turn = queue.SimpleQueue(), threading.Lock()
        self._count, self._free = threading.Lock(), 0  # threads that are not in callbacks

    def add(self, item):
        self._queue.put(item)
        self._provide(0)

    def stop(self):
        self._queue.put(None)  # starts no thread, which a process that ends may not

    def _provide(self, change):
        with self._count:
            self._free += change
            if self._free > 0:
                return
            self._free += 1
        threading.Thread(target=self._run, name="ringo futures", daemon=True).start()

    def _run(self):
        while True:
            with self._turn:
                item = self._queue.get()
                if item is None:
                    self._queue.put(None)  # for the other threads
                    return
                _ended(item[0])
            self._provide(-1)
            item[1].set_result(None)
            del item
            self._provide(1)


def _ended(work):
    try:
        work.wait()
    except Exception:
        pass  # the readers of its future get it


def _complete(work, ended):
    _ended(work)
    ended.set_result(None)


def _connect(ref):
    """Opens lines that a group wants, as soon as their senders have made them, until it wants none or is dropped."""
    pause = 0.0005
    while True:
        group = ref()
        found = group is not None and group._find_lines()
        if found is False:
            return
        del group
        pause = 0.0005 if found else min(2 * pause, 0.02)
        time.sleep(pause)
