"""Rank 1 is lost in one of the ways below; whatever the other ranks do then ends in an error that names it. Run as
lost.py RANK SIZE FILE WAY [READER...]; the last word of the others is ok."""

import datetime
import gc
import os
import signal
import sys
import threading
import time
import traceback

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # PowerSGD's hook of torch 2 waits for a GPU wherever it sees one
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import torch_ringo

LOST = 1
rank, size, file, way = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
LIVES = way in ("hangs", "stops")  # the others have only their time-out
store = dist.FileStore(file + "-end", size)


def come_to_end():
    store.add("ended", 1)
    while store.add("ended", 0) < size - 1:
        time.sleep(0.05)


def be_lost():
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif way == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif way == "raises":
        raise ValueError("a batch that cannot be read")
    elif way == "hangs":
        come_to_end()
    elif way == "leaves":  # its groups, and lives on
        dist.destroy_process_group()
        come_to_end()
    elif way != "exits":
        raise ValueError(way)
    sys.exit()


# A reader yields between what all ranks do and what those do that are left.


def alone(operation):
    def reader(group):
        yield
        operation(group)

    return reader


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))


def training(hook=None, builtin=None, of=None, **named):
    def reader(group):
        parallel = DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.001, **named)
        if hook:
            state, function = hook(group)
            parallel.register_comm_hook(state, function)
        if builtin:
            parallel._register_builtin_comm_hook(builtin)
        (of or batches)(parallel, group, 3)
        yield
        (of or batches)(parallel, group, 3)

    return reader


def batches(parallel, group, n):
    for _ in range(n):
        parallel(torch.ones(4, 8)).sum().backward()


def joined(parallel, group, n):
    with Join([parallel]):
        batches(parallel, group, n)


def chained(group):
    """A hook whose future is the end of a chain."""

    def hook(state, bucket):
        works = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
        return works.get_future().then(lambda f: f.value()).then(lambda f: f.value()[0])

    return None, hook


def power(group):
    return powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=0.1), \
        powerSGD_hook.powerSGD_hook


def sharded(group):
    m = model()
    optimizer = ZeroRedundancyOptimizer(m.parameters(), optimizer_class=torch.optim.SGD, lr=0.1, process_group=group)
    for i in range(2):
        m(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        if i == 0:
            yield


def fully_sharded(group):
    from torch.distributed.fsdp import FullyShardedDataParallel

    parallel = FullyShardedDataParallel(model(), process_group=group, device_id=torch.device("cpu"))
    for i in range(2):
        parallel(torch.ones(4, 8)).sum().backward()
        if i == 0:
            yield


def after_one(group):
    """A receive on a line that has carried a message."""
    if rank == LOST:
        for peer in range(size):
            if peer != LOST:
                dist.send(torch.ones(1), peer, group=group)
    else:
        dist.recv(torch.zeros(1), LOST, group=group)
    yield
    dist.recv(torch.zeros(1), LOST, group=group)


def batch(group):
    ops = [dist.P2POp(dist.isend, torch.ones(1 << 20), LOST, group), dist.P2POp(dist.irecv, torch.ones(1 << 20), LOST, group)]
    for work in reversed(dist.batch_isend_irecv(ops)):
        work.wait()


READERS = {
    "all_reduce": alone(lambda g: dist.all_reduce(torch.ones(4), group=g)),
    "future": alone(lambda g: dist.all_reduce(torch.ones(4), group=g, async_op=True).get_future().wait()),
    "then": alone(lambda g: dist.all_reduce(torch.ones(4), group=g, async_op=True).get_future().then(lambda f: f.value()).wait()),
    "collect": alone(lambda g: torch.futures.wait_all([dist.all_reduce(torch.ones(4), group=g, async_op=True).get_future()])),
    "ddp": training(),
    "ddp, static": training(static_graph=True, gradient_as_bucket_view=True),
    "ddp, allreduce hook": training(lambda g: (g, default_hooks.allreduce_hook)),
    "ddp, fp16 hook": training(lambda g: (g, default_hooks.fp16_compress_hook)),
    "ddp, bf16 hook": training(lambda g: (g, lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket))),
    "ddp, wrapped hook": training(lambda g: (g, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))),
    "ddp, PowerSGD": training(power),
    "ddp, chain": training(chained),
    "ddp, hook in C++": training(builtin=dist.BuiltinCommHookType.ALLREDUCE),
    "Join": training(of=joined),
    "ZeRO": sharded,
    "recv": alone(lambda g: dist.recv(torch.zeros(1), LOST, group=g)),
    "irecv": alone(lambda g: dist.irecv(torch.zeros(1), LOST, group=g).wait()),
    "recv, second": after_one,
    "recv, future": alone(lambda g: dist.irecv(torch.zeros(1), LOST, group=g).get_future().wait()),
    "send": alone(lambda g: dist.send(torch.ones(1 << 23), LOST, group=g)),
    "isend": alone(lambda g: dist.isend(torch.ones(1), LOST, group=g).wait()),
    "batch": alone(batch),
    "any source": alone(lambda g: dist.recv(torch.zeros(1), group=g)),
}
if hasattr(dist.distributed_c10d, "_world"):  # on the CPU since torch 2.1
    READERS["FSDP"] = fully_sharded
if way == "leaves":
    del READERS["Join"]  # which keeps its model, and so the group, until the process ends
wanted = sys.argv[5:] or list(READERS)
torch.set_num_threads(1)
dist.init_process_group("ringo", init_method="file://" + file, rank=rank, world_size=size)
if rank == LOST:
    store.set("pid", str(os.getpid()))
begun = []
for name in wanted:
    # any source: another rank is left, and may send
    limit = datetime.timedelta(seconds=3 if LIVES or name == "any source" else 100)
    begun.append(READERS[name](dist.new_group(timeout=limit)))
    next(begun[-1])
dist.barrier()
if rank == LOST:
    begun.clear()
    gc.collect()  # what refers to groups
    be_lost()
ends = {}


def read(name, reader):
    try:
        next(reader, None)
        ends[name] = "no error"
    except RuntimeError as e:
        text = str(e)
        named = "rank %d" % LOST in text or name == "any source" and way != "killed"
        ends[name] = "" if named and (not LIVES or "timeout" in text) else text
    except BaseException:
        ends[name] = traceback.format_exc()


began = time.monotonic()
threads = [threading.Thread(target=read, args=r) for r in zip(wanted, begun)]
for t in threads:
    t.start()
for t in threads:
    t.join()
took = time.monotonic() - began
come_to_end()
if way == "stops" and store.add("told", 1) == size - 1:
    os.kill(int(store.get("pid")), signal.SIGKILL)
wrong = {name: e for name, e in ends.items() if e}
for name, e in wrong.items():
    print("%s: %s: %s" % (way, name, e))
if took > 50:
    sys.exit("%s: after %.0f s" % (way, took))
print("failed" if wrong else "ok")
