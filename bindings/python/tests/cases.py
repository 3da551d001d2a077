"""What a process group of Ringo does, compared with what the operations are defined to do. Run on each rank as
cases.py RANK SIZE FILE; the last word is ok."""

import datetime
import sys
import threading

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
    give = [(rank + r) % 3 for r in range(size)]  # symmetric, so it is what each gets too
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
        wrong(ValueError, work.wait, "tag 7", "8 bytes", "12")
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
    """Losses of data-parallel training beside those that Gloo gives."""
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


torch.set_num_threads(1)
dist.init_process_group("ringo", init_method="file://" + file, rank=rank, world_size=size)
for case in (reductions, shapes, moves, exchanges, messages, objects, background, groups, monitored, training):
    try:
        case()
    except BaseException:
        print("rank %d: %s:" % (rank, case.__name__), flush=True)
        raise
    dist.barrier()
dist.destroy_process_group()
print("ok")
