"""22 hangs of two ranks under PyTorch on two GPUs, with the flight recorder on: hangs.py OUT [NAME...]

Each runs in two processes of its own. OUT/NAME has truth.txt, logs, dumps, RAS's answer and torchfrtrace's; WAVE of
them run at a time. hangs.tar.gz beside this file is "WAVE=11 python3 hangs.py hangs" on two H100s, with PyTorch 2.11
and NCCL 2.28.9. Of what was written paths and addresses were replaced, nothing else; its line numbers are of the copy
that ran.

MORE=1 switches on what docs/why.md asks for beside the five variables: when GPUs begin calls
(TORCH_NCCL_ENABLE_TIMING), NCCL's log of calls, and Python's stacks, which are taken when RAS is asked.
"""
import faulthandler, json, os, shutil, signal, socket, subprocess, sys, time
from datetime import timedelta
TIMEOUT = 12.0
MORE = os.environ.get('MORE') == '1'

def begin(rank, seconds=TIMEOUT):
    import torch, torch.distributed as dist
    if MORE: faulthandler.register(signal.SIGUSR1, open(f'stack_rank_{rank}.txt', 'w'), all_threads=True)
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', timeout=timedelta(seconds=25)) # 22 processes begin at once
    x = torch.ones(1 << 16, device='cuda')
    for _ in range(5): dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=seconds), dist.group.WORLD)
    print('begun', flush=True)
    return torch, dist

def forever(): time.sleep(600)
def big(t, n=1 << 24): return t.ones(n, device='cuda')
def pair(d): return d.new_group([0, 1], timeout=timedelta(seconds=TIMEOUT))
def step(t, d, x):
    d.all_reduce(x); t.cuda.synchronize()

# Each has the truth as its doc string, which ringo why should find.
def skips(r, t, d):
    'rank 1 skips one all_reduce and waits for nothing afterwards'
    x = big(t)
    for i in range(4):
        if r == 1 and i == 2: continue
        step(t, d, x)
    forever()
def shape(r, t, d):
    'ranks call the same all_reduce with other sizes'
    x = big(t, 1 << 24 if r == 0 else 1 << 10)
    for _ in range(2): step(t, d, x)
    forever()
def kind(r, t, d):
    'rank 0 calls all_reduce where rank 1 calls broadcast'
    x = big(t)
    d.all_reduce(x) if r == 0 else d.broadcast(x, 0)
    t.cuda.synchronize(); step(t, d, x); forever()
def groups(r, t, d):
    'two groups in another order on the ranks'
    a, b, x = pair(d), pair(d), big(t)
    for g in (a, b): d.all_reduce(x, group=g)
    t.cuda.synchronize()
    for g in ((a, b) if r == 0 else (b, a)): d.all_reduce(x, group=g); t.cuda.synchronize()
    forever()
def stopped(r, t, d):
    'rank 1 is stopped by a signal'
    x = big(t); step(t, d, x)
    if r == 1: os.kill(os.getpid(), signal.SIGSTOP)
    step(t, d, x); forever()
def killed(r, t, d):
    'rank 1 was killed'
    x = big(t); step(t, d, x)
    if r == 1: os.kill(os.getpid(), signal.SIGKILL)
    step(t, d, x); forever()
def raises(r, t, d):
    'rank 1 ended with an exception'
    x = big(t); step(t, d, x)
    if r == 1: raise ValueError('loss is nan in step 7')
    step(t, d, x); forever()
def loader(r, t, d):
    'rank 1 waits for its data loader'
    class Slow(t.utils.data.Dataset):
        def __len__(self): return 100
        def __getitem__(self, i):
            if r == 1 and i == 3: time.sleep(600)
            return t.ones(4)
    x = big(t)
    for _ in t.utils.data.DataLoader(Slow()): step(t, d, x)
    forever()
def spins(r, t, d):
    'a kernel of rank 1 spins in front of its all_reduce'
    x = big(t); step(t, d, x)
    if r == 1: t.cuda._sleep(1 << 40)
    d.all_reduce(x); t.cuda.synchronize(); forever()
def streams(r, t, d):
    'two groups on two streams, each waiting for the other on the other rank'
    a, b, x, y = pair(d), pair(d), big(t), big(t)
    d.all_reduce(x, group=a); d.all_reduce(y, group=b); t.cuda.synchronize()
    s = [t.cuda.Stream(), t.cuda.Stream()]
    first, second = ((a, x), (b, y)) if r == 0 else ((b, y), (a, x))
    with t.cuda.stream(s[0]): d.all_reduce(first[1], group=first[0])
    s[1].wait_stream(s[0])
    with t.cuda.stream(s[1]): d.all_reduce(second[1], group=second[0])
    t.cuda.synchronize(); forever()
def root(r, t, d):
    'ranks broadcast from different roots'
    x = big(t, 1 << 26); d.broadcast(x, r); t.cuda.synchronize(); step(t, d, x); forever()
def dtype(r, t, d):
    'ranks call all_reduce with other types'
    x = t.ones(1 << 24, device='cuda', dtype=t.float32 if r == 0 else t.float64)
    step(t, d, x); step(t, d, x); forever()
def sends(r, t, d):
    'both ranks send and nobody receives'
    x = big(t, 1 << 26); d.send(x, 1 - r); t.cuda.synchronize(); forever()
def receives(r, t, d):
    'rank 0 receives from rank 1, which calls all_reduce'
    x = big(t); d.recv(x, 1) if r == 0 else d.all_reduce(x)
    t.cuda.synchronize(); forever()
def uneven(r, t, d):
    'rank 1 has fewer batches and has left the loop'
    x = big(t)
    for _ in range(10 if r == 0 else 7): step(t, d, x)
    def evaluate(): time.sleep(600)
    evaluate()
def no_group(r, t, d):
    'a group that only rank 0 makes and uses'
    x = big(t); step(t, d, x)
    if r == 0: d.all_reduce(x, group=pair(d)); t.cuda.synchronize()
    forever()
def busy(r, t, d):
    'rank 1 computes on the host and never comes'
    x = big(t); step(t, d, x)
    def compile_graph():
        while True: pass
    if r == 1: compile_graph()
    step(t, d, x); forever()
def oom(r, t, d):
    'rank 1 has caught an error of memory, left a call out and goes on with another'
    x = big(t); step(t, d, x)
    try:
        if r == 1: t.empty(1 << 50, device='cuda')
        step(t, d, x)
    except RuntimeError: print('skipping a batch: out of memory', flush=True)
    d.all_gather([t.empty(1 << 22, device='cuda') for _ in range(2)], t.ones(1 << 22, device='cuda'))
    t.cuda.synchronize(); forever()
def lock(r, t, d):
    'rank 1 waits for a lock of its own'
    import threading
    x = big(t); step(t, d, x); l = threading.Lock(); l.acquire()
    if r == 1: l.acquire()
    step(t, d, x); forever()
def scatter(r, t, d):
    'reduce_scatter with other sizes'
    n = 1 << 24 if r == 0 else 1 << 12
    out = t.empty(n, device='cuda'); d.reduce_scatter_tensor(out, t.ones(2 * n, device='cuda'))
    t.cuda.synchronize(); step(t, d, out); forever()
def clip(r, t, d):
    'rank 0 alone makes a call more in every step'
    x = big(t)
    for _ in range(6):
        d.all_reduce(x)
        if r == 0: d.all_reduce(x[:1000])
        t.cuda.synchronize()
    forever()
def late(r, t, d):
    'rank 1 is slow and not stuck: the time-out is too short'
    x = big(t)
    for i in range(4):
        if r == 1 and i == 2: time.sleep(TIMEOUT + 6)
        step(t, d, x)
    forever()
CASES = [skips, shape, kind, groups, stopped, killed, raises, loader, spins, streams, root, dtype, sends, receives,
         uneven, no_group, busy, oom, lock, scatter, clip, late]

def ask_ras(port):
    try:
        s = socket.create_connection(('127.0.0.1', port), 3); s.settimeout(8); f = s.makefile('rwb')
        f.write(b'CLIENT PROTOCOL 2\n'); f.flush(); a = f.readline()
        f.write(b'TIMEOUT 5\n'); f.flush(); f.readline()
        f.write(b'VERBOSE STATUS\n'); f.flush()
        return a + f.read()
    except Exception as e: return ('no answer: %r' % e).encode()

def wave(cases, out):
    t0 = time.time(); jobs = []
    for i, c in enumerate(cases):
        d = os.path.join(out, c.__name__); os.makedirs(d); open(d + '/truth.txt', 'w').write(c.__doc__ + '\n')
        k = CASES.index(c); prefix = os.path.abspath(d) + '/nccl_trace_rank_'
        e = dict(os.environ, MASTER_ADDR='127.0.0.1', MASTER_PORT=str(27100 + 11 * k), WORLD_SIZE='2',
                 NCCL_RAS_ADDR='127.0.0.1:%d' % (28100 + k), NCCL_NVLS_ENABLE='0', NCCL_DEBUG='WARN',
                 TORCH_NCCL_TRACE_BUFFER_SIZE='2000', TORCH_FR_BUFFER_SIZE='2000', TORCH_NCCL_DUMP_ON_TIMEOUT='1',
                 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=prefix, TORCH_FR_DUMP_TEMP_FILE=prefix,
                 TORCH_NCCL_COORD_CHECK_MILSEC='500', TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC='4000',
                 TORCH_NCCL_PROPAGATE_ERROR='0', TORCH_INCLUDE_STACK_TRACE='true', PYTHONUNBUFFERED='1')
        if MORE:
            e.update(TORCH_NCCL_ENABLE_TIMING='1', NCCL_DEBUG='INFO', NCCL_DEBUG_SUBSYS='INIT,COLL',
                     NCCL_DEBUG_FILE=os.path.abspath(d) + '/nccl.%p')
        ps = [subprocess.Popen([sys.executable, os.path.abspath(__file__), '--rank', c.__name__], cwd=d,
                               env=dict(e, RANK=str(r)), stdout=open(f'{d}/rank{r}.log', 'wb'),
                               stderr=subprocess.STDOUT, start_new_session=True) for r in range(2)]
        jobs.append((c, d, ps, 28100 + k))
    asked = False
    while time.time() - t0 < float(os.environ.get('WAVE_TIME', '58')):
        time.sleep(0.5)
        if not asked and time.time() - t0 > float(os.environ.get('ASK', '20')):
            asked = True
            for c, d, ps, port in jobs:
                open(d + '/ras.txt', 'wb').write(ask_ras(port))
                for p in ps:
                    if MORE and p.poll() is None: p.send_signal(signal.SIGUSR1)
        if asked and all(all(p.poll() is not None for p in ps) for _, _, ps, _ in jobs): break
    for c, d, ps, port in jobs:
        ends = [p.poll() for p in ps]
        for p in ps:
            try: os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError: pass
            p.wait()
        for r in range(2):
            f = f'{d}/rank{r}.log'; b = open(f, 'rb').read()
            if len(b) > 60000: open(f, 'wb').write(b[:30000] + b'\n...\n' + b[-30000:])
        dumps = sorted(x for x in os.listdir(d) if x.startswith('nccl_trace'))
        open(d + '/ends.txt', 'w').write(json.dumps(ends))
        print('%-9s ended %s dumps %s' % (c.__name__, ends, dumps), flush=True)

def frtrace(out):
    tool = [shutil.which('torchfrtrace')] if shutil.which('torchfrtrace') else None
    if tool is None:
        import importlib.util
        for m in ('torch.distributed.flight_recorder.fr_trace', 'tools.flight_recorder.fr_trace'):
            try:
                if importlib.util.find_spec(m): tool = [sys.executable, '-m', m]; break
            except Exception: pass
    if tool is None: print('torchfrtrace is not here'); return
    ps = []
    for n in sorted(os.listdir(out)):
        d = os.path.join(out, n)
        ps.append(subprocess.Popen(['timeout', '25', *tool, d, '-p', 'nccl_trace_rank_'],
                                   stdout=open(d + '/frtrace.txt', 'wb'), stderr=subprocess.STDOUT))
    for p in ps: p.wait()
    print('torchfrtrace', tool, 'statuses', [p.returncode for p in ps])

if __name__ == '__main__':
    if sys.argv[1] == '--rank':
        r = int(os.environ['RANK']); c = {c.__name__: c for c in CASES}[sys.argv[2]]
        t, d = begin(r); c(r, t, d); sys.exit()
    out, names = sys.argv[1], sys.argv[2:]
    cases = [c for c in CASES if not names or c.__name__ in names]
    w = int(os.environ.get('WAVE', '11'))
    for i in range(0, len(cases), w): wave(cases[i:i + w], out)
    frtrace(out)
