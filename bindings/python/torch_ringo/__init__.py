"""torch.distributed on host memory by Ringo, in the place of Gloo:

    import torch_ringo
    torch.distributed.init_process_group("ringo")
"""

import torch.distributed as dist

from .group import ProcessGroup

__all__ = ["ProcessGroup", "monitored_barrier"]


def _create(store, rank, size, timeout):
    return ProcessGroup(store, rank, size, timeout)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch.distributed.monitored_barrier, which torch has for Gloo alone."""
    group = group or dist.distributed_c10d._get_default_group()
    return group.monitored_barrier(timeout, wait_all_ranks)


try:
    dist.Backend.register_backend("ringo", _create, devices=["cpu"])
except TypeError:  # before 2.0
    dist.Backend.register_backend("ringo", _create)
