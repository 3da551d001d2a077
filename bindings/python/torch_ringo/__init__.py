"""torch.distributed on host memory by Ringo, in the place of Gloo:

    import torch_ringo
    torch.distributed.init_process_group("ringo")               # or "cpu:ringo,cuda:nccl"
"""

import functools

import torch.distributed as dist

from . import devices
from .group import ProcessGroup

__all__ = ["ProcessGroup", "monitored_barrier", "split_group"]


def _create(store, rank, size, timeout, others=None):
    return ProcessGroup(store, rank, size, timeout, others)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch.distributed.monitored_barrier, which torch has for Gloo only."""
    group = group or dist.distributed_c10d._get_default_group()
    return group.monitored_barrier(timeout, wait_all_ranks)


def split_group(split_ranks, timeout=None):
    """torch.distributed.split_group of the default group, which torch has for NCCL only. split_ranks is lists of ranks that do not overlap.
    All ranks of the default group call this. Returns the group of the caller's list, or None if the caller is in no list. Cost: a new_group
    for each list."""
    ranks = [r for part in split_ranks for r in part]
    if not all(split_ranks) or len(set(ranks)) != len(ranks):
        raise ValueError("ringo: split_group wants lists of ranks that are not empty and do not overlap, not %s" % (split_ranks,))
    mine = None
    for part in split_ranks:
        group = dist.new_group(sorted(part), backend="ringo", **({"timeout": timeout} if timeout else {}))
        if dist.get_rank() in part:
            mine = group
    return mine


try:
    dist.Backend.register_backend("ringo", _create, devices=["cpu"])
except TypeError:  # before 2.1, where a name with devices is registered like any other
    for _name in ("ringo", "cpu:ringo,cuda:nccl", "cuda:nccl,cpu:ringo"):
        _others = {d: b for d, b in devices.parse(_name).items() if d != "cpu"}
        dist.Backend.register_backend(_name, functools.partial(_create, others=_others))
