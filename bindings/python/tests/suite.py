"""PyTorch's own cases of torch.distributed for Gloo, on a process group of Ringo or of Gloo. Run on each rank as
suite.py RANK SIZE FILE BACKEND [NAME...]: the named cases, or all. Each line is a case and how it ended on this rank. The last line has
the counts, and ok if no case has failed and no named case was skipped. The cases come with torch (torch.testing). Cases that need a
GPU are skipped."""

import datetime
import logging
import os
import re
import sys
import time
import traceback
import types
import unittest

rank, size, file, backend = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
names = sys.argv[5:]
os.environ.update(BACKEND="gloo", WORLD_SIZE=str(size))

try:
    import expecttest  # noqa: F401
except ImportError:  # torch.testing imports expecttest, but no case here uses it
    sys.modules["expecttest"] = types.SimpleNamespace(ACCEPT=False, TestCase=unittest.TestCase)

import torch
import torch.distributed as dist

import torch_ringo  # noqa: F401

sys.argv[1:] = []  # torch.testing parses the arguments
from torch.testing._internal import common_distributed
from torch.testing._internal.distributed import distributed_test

torch.set_num_threads(1)
logging.disable(logging.WARNING)


PATIENCE = 120  # seconds
# Cases that cannot work here for reasons outside of Ringo: one opens a group by env:// again, the others ask for the
# name "gloo".
OTHERS = {"test_barrier_timeout_global", "test_get_backend", "test_monitored_barrier_failure_order", "test_monitored_barrier_gloo",
          "test_monitored_barrier_gloo_rank_0_timeout", "test_monitored_barrier_gloo_subgroup", "test_monitored_barrier_wait_all_ranks"}
store = dist.FileStore(file, size)


class Cases(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    pass


def together(number, key="begins"):
    """Waits until all ranks have come to case number."""
    store.add("%s-%d" % (key, number), 1)
    end = time.monotonic() + PATIENCE
    while store.add("%s-%d" % (key, number), 0) < size:
        if time.monotonic() > end:
            sys.exit("rank %d: the others did not come to case %d" % (rank, number))
        time.sleep(0.005)


def ended(name, number):
    """Runs a case and returns how it ended."""
    case = Cases(name)
    case.rank, case.file_name = rank, file
    os.environ["TEMP_DIR"] = "%s-%d.d" % (file, number)
    for folder in ("barrier", "init_dir", "test_dir"):
        os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
    distributed_test.Barrier.barrier_id = 0
    dist.init_process_group(backend, init_method="file://%s-%d" % (file, number), rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=PATIENCE / 4))
    try:
        getattr(case, name)()
        case._barrier()
        return "passed"
    except unittest.SkipTest as e:
        return "skipped: %s" % e
    except SystemExit as e:
        reason = [s.message for s in common_distributed.TEST_SKIPS.values() if s.exit_code == e.code]
        return "skipped: %s" % reason[0] if reason else "failed: exit %s" % e.code
    except BaseException as e:
        if os.environ.get("SUITE_TRACE"):
            traceback.print_exc()
        return "failed: %s: %s" % (type(e).__name__, re.sub(r"\s+", " ", str(e))[:300])
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


counts = {}
for number, name in enumerate(names or sorted(n for n in dir(Cases) if n.startswith("test_") and n not in OTHERS)):
    together(number)
    began = time.monotonic()
    text = ended(name, number)
    counts[text[:7].strip(":")] = counts.get(text[:7].strip(":"), 0) + 1
    print("%6.2f %s %s" % (time.monotonic() - began, name, text), flush=True)
print(" ".join("%s %d" % c for c in sorted(counts.items())))
if not counts.get("failed") and not (names and counts.get("skipped")):
    print("ok")
