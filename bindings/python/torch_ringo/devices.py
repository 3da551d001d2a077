"""Groups of torch's own beside one of Ringo, for tensors that are not on the CPU: "cpu:ringo,cuda:nccl"."""

import functools

import torch
import torch.distributed as dist


def device_of(arguments):
    """The type of the device of an operation's first tensor, "cpu" if there is no tensor."""
    for x in arguments:
        while isinstance(x, (list, tuple)) and x:
            x = x[0]
        if isinstance(x, torch.Tensor):
            return "cpu" if x.is_cpu else x.device.type
    return "cpu"


def parse(text):
    """The backends by device of a name such as "cpu:ringo,cuda:nccl"; empty for a name without devices."""
    return dict(part.split(":", 1) for part in str(text).lower().split(",") if ":" in part)


def configured(group):
    """The backends by device that torch has for a group, since 2.1."""
    world = getattr(dist.distributed_c10d, "_world", None)
    return parse(getattr(world, "pg_backend_config", {}).get(group, ""))


def open_native(backend, store, rank, size, timeout):
    """Opens a group of one of torch's backends, or of a registered one."""
    if backend == "gloo":
        return dist.ProcessGroupGloo(store, rank, size, timeout)
    if backend == "nccl":
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        return dist.ProcessGroupNCCL(store, rank, size, options)
    plugin = getattr(dist.Backend, "_plugins", {}).get(backend.upper())
    if plugin is None or plugin.extended_api:
        raise ValueError("ringo: beside ringo stand nccl, gloo and registered backends without the extended interface, not %r: "
                         "make two groups" % backend)
    return plugin.creator_fn(store, rank, size, timeout)


def by_device(name, own):
    """Operation own of a group of Ringo, wrapped: tensors on another device go to the operation name of the group for that device."""

    @functools.wraps(own)
    def operation(self, *arguments, **named):
        device = device_of(arguments)
        other = None if device == "cpu" else self.beside(device)
        return own(self, *arguments, **named) if other is None else getattr(other, name)(*arguments, **named)

    return operation
