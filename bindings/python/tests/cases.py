"""Operations of a process group of Ringo, compared with their definitions. Run on each rank as
cases.py RANK SIZE FILE; the last word is ok."""

import copy
import datetime
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

import torch_ringo

rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
TYPES = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def same(got, want):
    assert torch.equal(torch.as_tensor(got), torch.as_tensor(want)), "rank %d: got %s, want %s" % (rank, got, want)


def wrong(error, f, *words):
    try:
        f()
    except error as e:
        assert all(w in str(e) for w in words), "want %s in: %s" % (words, e)
        return
    raise AssertionError("no error")


def each():
    """Contributions of all ranks, which differ in every place."""
    return [torch.arange(6) + 1 + r for r in range(size)]


def reductions():
    for t in TYPES:
        for op, f in [(dist.ReduceOp.SUM, lambda x: x.sum(0)), (dist.ReduceOp.MAX, lambda x: x.max(0)[0]), (dist.ReduceOp.MIN, lambda x: x.min(0)[0]), (dist.ReduceOp.PRODUCT, lambda x: x.prod(0))]:
            want = f(torch.stack(each())).to(t)
            x = each()[rank].to(t)
            dist.all_reduce(x, op)
            same(x, want)
            x = each()[rank].to(t)
            dist.reduce(x, 1, op)
            same(x, want if rank == 1 else each()[rank].to(t))
    x = torch.tensor([rank == 0, False, True])
    dist.all_reduce(x)
    same(x, torch.tensor([True, False, True]))
    x = torch.tensor([1 + 2j * rank, 3j])
    dist.all_reduce(x)
    same(x, torch.tensor([size + 1j * size * (size - 1), 3j * size]))
    x = torch.tensor([5, 1 << rank])
    dist.all_reduce(x, dist.ReduceOp.BOR)
    same(x, torch.tensor([5, (1 << size) - 1]))
    x = [torch.ones(2), torch.full((3,), float(rank))]
    work = dist.distributed_c10d._get_default_group().allreduce_coalesced(x, dist.AllreduceCoalescedOptions() if hasattr(dist, "AllreduceCoalescedOptions") else dist.ReduceOp.SUM)
    work.wait()
    same(x[1], torch.full((3,), size * (size - 1) / 2.0))


def sparse():
    places = [[0, rank], [1, 2]]
    x = torch.sparse_coo_tensor(places, [1.0, 2.0 + rank], (size, 4))
    dist.all_reduce(x)
    want = sum(torch.sparse_coo_tensor([[0, r], [1, 2]], [1.0, 2.0 + r], (size, 4)).to_dense() for r in range(size))
    same(x.to_dense(), want)
    x = torch.sparse_coo_tensor(torch.zeros(1, rank, dtype=torch.int64), torch.ones(rank, 3), (2, 3))
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    same(x.to_dense(), torch.stack([torch.full((3,), size * (size - 1) / 2.0), torch.zeros(3)]))
    wrong(ValueError, lambda: dist.all_reduce(x, dist.ReduceOp.MAX), "summed")
    torch.manual_seed(1)
    table = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(size + 1, 2, sparse=True))
    table(torch.tensor([rank, size])).sum().backward()
    want = torch.full((size + 1, 2), 1.0 / size)
    want[size] = 1
    assert torch.allclose(table.module.weight.grad.to_dense(), want), table.module.weight.grad


def shapes():
    x = torch.zeros(4, 6)
    x[:, ::2] = rank
    view = x[:, ::2].t()
    dist.all_reduce(view)
    same(x[:, ::2], torch.full((4, 3), size * (size - 1) / 2.0))
    same(x[:, 1::2], torch.zeros(4, 3))
    dist.all_reduce(torch.zeros(0))
    x = torch.full((3, 2), rank).t()
    dist.broadcast(x, 1)
    same(x, torch.ones(2, 3, dtype=torch.int64))
    with torch.inference_mode():
        x = torch.ones(3)
        dist.all_reduce(x)
        same(x, torch.full((3,), float(size)))
    p = torch.nn.Parameter(torch.full((2, 2), float(rank)))
    dist.broadcast(p.data, 0)
    wrong(ValueError, lambda: dist.all_reduce(torch.zeros(2, device="meta")), "CPU")


def moves():
    outs = [torch.zeros(6, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(outs, each()[rank])
    for o, want in zip(outs, each()):
        same(o, want)
    outs = [torch.zeros(r + 1) for r in range(size)]
    dist.all_gather(outs, torch.full((rank + 1,), float(rank)))
    for r, o in enumerate(outs):
        same(o, torch.full((r + 1,), float(r)))
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    flat = torch.zeros(6 * size, dtype=torch.int64)
    gather(flat, each()[rank])
    same(flat, torch.cat(each()))
    parts = [torch.full((2,), float(10 * rank + r)) for r in range(size)]
    out = torch.zeros(2)
    dist.reduce_scatter(out, [p.clone() for p in parts])
    same(out, torch.full((2,), sum(10.0 * r + rank for r in range(size))))
    out = torch.zeros(rank + 1)
    dist.reduce_scatter(out, [torch.full((r + 1,), float(10 * rank + r)) for r in range(size)])
    same(out, torch.full((rank + 1,), sum(10.0 * r + rank for r in range(size))))
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    out = torch.zeros(2)
    scatter(out, torch.cat(parts))
    same(out, torch.full((2,), sum(10.0 * r + rank for r in range(size))))
    outs = [torch.zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.full((2,), float(rank)), outs, 1)
    if rank == 1:
        same(torch.stack(outs)[:, 0], torch.arange(size).float())
    out = torch.zeros(2, 2)
    dist.scatter(out, [torch.full((2, 2), float(r)) for r in range(size)] if rank == 1 else None, 1)
    same(out, torch.full((2, 2), float(rank)))


def exchanges():
    out = torch.zeros(size)
    dist.all_to_all_single(out, torch.arange(size) + 10.0 * rank)
    same(out, torch.arange(size) * 10.0 + rank)
    give = [(rank + r) % 3 for r in range(size)]  # symmetric, so each rank gets as many as it gives
    out = torch.zeros(sum(give), 2)
    dist.all_to_all_single(out, torch.full((sum(give), 2), float(rank)), give, give)
    same(out[:, 0], torch.cat([torch.full((n,), float(r)) for r, n in enumerate(give)]))
    outs = [torch.zeros(n) for n in give]
    dist.all_to_all(outs, [torch.full((n,), float(rank)) for n in give])
    for r, o in enumerate(outs):
        same(o, torch.full((give[r],), float(r)))


def messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    big = torch.full((1 << 20,), float(rank))
    took = torch.zeros(1 << 20)
    works = [dist.isend(big, right), dist.irecv(took, left)]
    for w in works:
        w.wait()
    same(took[-1], torch.tensor(float(left)))
    one, two = torch.zeros(1), torch.zeros(2, 2).t()
    works = [dist.isend(torch.full((1,), float(rank)), right, tag=1), dist.isend(torch.full((2, 2), float(rank)), right, tag=2)]
    dist.recv(two, left, tag=2)
    dist.recv(one, left, tag=1)
    same(one, torch.tensor([float(left)]))
    same(two, torch.full((2, 2), float(left)))
    for w in works:
        w.wait()
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            x = torch.zeros(1)
            source = dist.recv(x)
            same(x, torch.tensor([float(source)]))
            seen.add(source)
        assert seen == set(range(1, size)), seen
        x = torch.zeros(3)
        work = dist.irecv(x, 1, tag=7)
        wrong(ValueError, work.wait, "rank 1's message with tag 7 has 8 bytes, and the tensor 12 (3 elements of torch.float32)")
    else:
        dist.send(torch.tensor([float(rank)]), 0)
        if rank == 1:
            dist.send(torch.zeros(2), 0, tag=7)


def objects():
    got = [None] * size
    dist.all_gather_object(got, {"rank": rank, "list": list(range(rank))})
    assert [g["rank"] for g in got] == list(range(size)), got
    got = [("from", rank)]
    dist.broadcast_object_list(got, 1)
    assert got == [("from", 1)], got


def background():
    works = [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(20)]
    x = torch.ones(1000)
    work = dist.all_reduce(x, async_op=True)
    future = work.get_future().then(lambda f: f.value()[0] * 2)
    same(future.wait(), torch.full((1000,), 2.0 * size))
    for w in works:
        w.wait()
        assert w.is_completed() and w.is_success()


def foreground():
    """An operation that its caller waits for at once needs no other thread."""
    live = dist.distributed_c10d._get_default_group()._live
    x = torch.ones(3)
    dist.all_reduce(x, async_op=True).wait()
    before = live[-1]
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather([torch.zeros(3) for _ in range(size)], x)
    dist.all_gather_object([None] * size, 1)
    assert live[-1] is before


def groups():
    pairs = [dist.new_group([0, 1]), dist.new_group(list(range(1, size)))]
    if rank < 2:
        x = torch.ones(1)
        dist.all_reduce(x, group=pairs[0])
        same(x, torch.tensor([2.0]))
    if rank > 0:
        x = torch.ones(1)
        dist.all_reduce(x, group=pairs[1])
        same(x, torch.tensor([size - 1.0]))
    three = [dist.new_group() for _ in range(3)]
    failed = []

    def run(i):
        try:
            for k in range(50):
                x = torch.tensor([float(i + k)])
                dist.all_reduce(x, group=three[i])
                same(x, torch.tensor([float(size * (i + k))]))
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed
    for g in pairs + three:
        if isinstance(g, torch_ringo.ProcessGroup):
            dist.destroy_process_group(g)


def monitored():
    torch_ringo.monitored_barrier(timeout=datetime.timedelta(seconds=60))
    if rank != 1:
        wrong(RuntimeError, lambda: torch_ringo.monitored_barrier(timeout=datetime.timedelta(seconds=0.2)), "rank 1 did not come")
    else:
        dist.distributed_c10d._get_default_group()._barriers += 1
    dist.barrier()


def training():
    """Data-parallel training has the same losses as with Gloo."""
    losses = {}
    for backend in ("gloo", "ringo"):
        group = dist.new_group(backend=backend)
        torch.manual_seed(1)
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)), process_group=group, bucket_cap_mb=0.001)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        torch.manual_seed(100 + rank)
        losses[backend] = []
        for _ in range(10):
            x = torch.randn(32, 16)
            loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[backend].append(loss.item())
    for a, b in zip(losses["gloo"], losses["ringo"]):
        assert abs(a - b) <= 1e-4 * abs(a), losses
    assert losses["ringo"][-1] < losses["ringo"][0], losses


def opened(store, name, seconds=60, **named):
    """A group opened by a store, which torch does not know of."""
    return torch_ringo.ProcessGroup(dist.PrefixStore(name, store), rank, size, datetime.timedelta(seconds=seconds), **named)


def stores():
    """Groups by each kind of store. A HashStore lives in one process, so its ranks are threads."""
    port = [0]
    if rank == 0:
        server = dist.TCPStore("127.0.0.1", 0, size, True, wait_for_workers=False)
        port = [server.port]
    dist.broadcast_object_list(port, 0)
    tcp = server if rank == 0 else dist.TCPStore("127.0.0.1", port[0], size, False, wait_for_workers=False)
    for store in (tcp, dist.FileStore(file + "-other", size)):
        x = torch.ones(2)
        opened(store, "a").allreduce([x]).wait()
        same(x, torch.full((2,), float(size)))
    dist.barrier()  # the server ends with rank 0
    hash_store, sums = dist.HashStore(), {}

    def run(r):
        x = torch.tensor([r + 1.0])
        group = torch_ringo.ProcessGroup(hash_store, r, 2)
        group.allreduce([x]).wait()
        sums[r] = x.item()
        group.barrier().wait()

    threads = [threading.Thread(target=run, args=(r,)) for r in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sums == {0: 3.0, 1: 3.0}, sums


def hundred():
    """A hundred groups at once. Their open files are closed with them."""
    store = dist.FileStore(file + "-hundred", size)
    before = len(os.listdir("/proc/self/fd"))
    many = [opened(store, str(i)) for i in range(100)]
    for _ in range(2):
        for i, group in enumerate(many):
            x = torch.tensor([float(i + rank)])
            group.allreduce([x]).wait()
            same(x, torch.tensor([i * size + size * (size - 1) / 2.0]))
    for group in many:
        group.barrier().wait()
        group.shutdown()
    dist.barrier()
    after = len(os.listdir("/proc/self/fd"))
    assert after < before + 100, "files open: %d before, %d after" % (before, after)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.tensor([float(i), float(os.getpid())])


def loaders():
    """Workers of data loaders are forked while groups are open. They do without the library, and the parent's groups go on."""
    for _ in range(2):
        total, workers = 0, set()
        for batch in torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2):
            x = batch[:, 0].sum()
            workers |= {int(p) for p in batch[:, 1]}
            dist.all_reduce(x)
            total += x.item()
        assert total == 120 * size and os.getpid() not in workers and len(workers) == 2, (total, workers)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            wrong(ValueError, lambda: dist.all_reduce(torch.ones(1)), "forked")
            status = 0
        finally:
            try:
                dist.distributed_c10d._get_default_group().shutdown()  # does not end the parent's group
            finally:
                os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    dist.barrier()


def mistakes():
    """If ranks disagree, the error names the rank, without TORCH_DISTRIBUTED_DEBUG. Then the group has ended."""
    store = dist.FileStore(file + "-mistakes", size)
    g = opened(store, "sizes")
    wrong(RuntimeError, lambda: g.allreduce([torch.ones(3 if rank == 1 else 2)]).wait(), "rank 1")
    g = opened(store, "types")
    wrong(RuntimeError, lambda: g.allreduce([torch.ones(2, dtype=torch.float64 if rank == 1 else torch.float32)]).wait(), "rank 1")
    g = opened(store, "kinds")
    opts, gather, scatter = dist.BroadcastOptions(), dist.GatherOptions(), dist.ScatterOptions()
    opts.rootRank = gather.rootRank = scatter.rootRank = 0
    wrong(RuntimeError, lambda: (g.broadcast([torch.ones(2)], opts) if rank == 1 else g.allreduce([torch.ones(2)])).wait(), "rank 1")
    n = 3 if rank == 1 else 5  # told in elements and types of torch
    whole = [torch.zeros(n) for _ in range(size)]
    for i, (x, operation) in enumerate([
        (torch.ones(n), lambda g, x: g.broadcast([x], opts)),
        (torch.ones(n), lambda g, x: g.allgather([whole], [x])),
        (torch.ones(n), lambda g, x: g.gather([whole] if rank == 0 else [], [x], gather)),
        (torch.ones(n), lambda g, x: g.scatter([x], [whole] if rank == 0 else [], scatter)),
        (torch.ones(n, dtype=torch.float64 if rank == 1 else torch.float32), lambda g, x: g.broadcast([x], opts)),
    ]):
        g = opened(store, "elements%d" % i)
        wrong(RuntimeError, lambda: (operation(g, x).wait(), g.barrier().wait()), "count 3, %s" % ("float64" if i == 4 else "float32"), "count 5, float32")
    g = opened(store, "int16")
    wrong(RuntimeError, lambda: g.allgather([[torch.ones(n, dtype=torch.int16)] * size], [torch.ones(n, dtype=torch.int16)]).wait(), "elements of torch.int16")
    wrong(ValueError, lambda: g.allgather([[torch.zeros(n) for _ in range(size)]], [torch.ones(n, dtype=torch.int32)]), "torch.int32")
    wrong(ValueError, lambda: g.allgather([[torch.zeros(n) for _ in range(size)]], [torch.ones(n + 1)]), "%d elements" % (n + 1))
    g = opened(store, "abort")
    g.barrier().wait()
    if rank == 1:
        g.abort("no more of this")
    else:
        wrong(RuntimeError, lambda: g.allreduce([torch.ones(2)]).wait(), "no more of this", "rank 1")
    dist.barrier()


class Elsewhere:
    """A group for tensors on another device, which records the operations that it was asked for."""

    def __init__(self, store, rank, size, timeout):
        self.asked = []

    def __getattr__(self, name):
        return lambda *arguments: self.asked.append(name)


def devices():
    """Operations on tensors of other devices go to torch's group for that device."""
    dist.Backend.register_backend("elsewhere", Elsewhere)
    store, there = dist.FileStore(file + "-devices", size), torch.ones(3, device="meta")
    g = opened(store, "d", others={"meta": "elsewhere"})
    x = torch.ones(3)
    g.allreduce([x]).wait()
    same(x, torch.full((3,), float(size)))
    g.allreduce([there])
    g.allgather([[there] * size], [there])
    g.gather([], [there])
    g.send([there], 0, 0)
    g._start_coalescing(there.device)
    other = g._get_backend(there.device)
    assert other.asked == ["allreduce", "allgather", "gather", "send", "_start_coalescing"], other.asked
    assert g._get_backend(torch.device("cpu")) is g
    assert [d.type for d in g._device_types] == ["cpu", "meta"]
    wrong(ValueError, lambda: opened(store, "e", others={"meta": "none"}).allreduce([there]), "'none'")
    if not hasattr(dist.distributed_c10d, "_world"):  # before 2.1 a name with devices is registered like any other
        assert dist.Backend("cpu:ringo,cuda:nccl") == "cpu:ringo,cuda:nccl"
    g = dist.new_group(backend="cpu:ringo,cuda:nccl")
    x = torch.ones(3)
    dist.all_reduce(x, group=g)
    same(x, torch.full((3,), float(size)))


def sharded():
    """FSDP on the CPU, which torch has since 2.1, has the results of one process with the whole batch."""
    if not hasattr(dist.distributed_c10d, "_world"):
        return
    from torch.distributed.fsdp import FullyShardedDataParallel

    torch.manual_seed(1)
    alone = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    together = FullyShardedDataParallel(copy.deepcopy(alone), device_id=torch.device("cpu"))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (alone, together)]
    for _ in range(3):
        x = torch.randn(4 * size, 8)
        losses = [alone(x).square().mean(), together(x[4 * rank:4 * rank + 4]).square().mean()]
        for loss, optimizer in zip(losses, optimizers):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = losses[1].detach().clone()
        dist.all_reduce(mean)
        assert abs(mean.item() / size - losses[0].item()) < 1e-4, (mean, losses)


def splits():
    g = torch_ringo.split_group([[0], list(range(1, size))])
    x = torch.tensor([1.0])
    dist.all_reduce(x, group=g)
    same(x, torch.tensor([1.0 if rank == 0 else size - 1.0]))
    wrong(ValueError, lambda: torch_ringo.split_group([[0, 1], [1]]), "overlap")


def buckets():
    """DDP broadcasts its parameters from C++, in a bucket for each type. Two buckets are under way at once."""
    for _ in range(20):
        x = [torch.full((3,), float(rank)), torch.full((2,), rank), torch.full((4,), float(rank)).double()]
        dist._broadcast_coalesced(dist.distributed_c10d._get_default_group(), x, 1 << 20, 1)
        for t in x:
            same(t, torch.ones_like(t))


torch.set_num_threads(1)
dist.init_process_group("ringo", init_method="file://" + file, rank=rank, world_size=size)
for case in (reductions, sparse, shapes, moves, exchanges, messages, objects, background, foreground, groups, monitored, buckets, training, stores, hundred, loaders, mistakes,
             devices, splits, sharded):
    began = time.monotonic()
    try:
        case()
    except BaseException:
        print("rank %d: %s:" % (rank, case.__name__), flush=True)
        raise
    dist.barrier()
    print("%6.2f s %s" % (time.monotonic() - began, case.__name__), flush=True)
dist.destroy_process_group()
print("ok")
