"""Groups of torch's own beside one of Ringo, for tensors that are not on the CPU: "cpu:ringo,cuda:nccl"."""

import functools

import torch
import torch.distributed as dist


def device_of(arguments):
    """The type of the device that the first tensor of an operation is on, "cpu" where there is none."""
    for x in arguments:
        while isinstance(x, (list, tuple)) and x:
            x = x[0]
        if isinstance(x, torch.Tensor):
            return "cpu" if x.is_cpu else x.device.type
    return "cpu"


def parse(text):
    """The backends by device of "cpu:ringo,cuda:nccl"; of a name without devices, none."""
    return dict(part.split(":", 1) for part in str(text).lower().split(",") if ":" in part)


def configured(group):
    """What torch has been told of the devices of a group, since 2.1."""
    world = getattr(dist.distributed_c10d, "_world", None)
    return parse(getattr(world, "pg_backend_config", {}).get(group, ""))


def open_native(backend, store, rank, size, timeout):
    """A group of one of torch's backends, or of one that was registered."""
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
    """The operation own of a group of Ringo, which leaves tensors on other devices to the group that there is for these."""

    @functools.wraps(own)
    def operation(self, *arguments, **named):
        device = device_of(arguments)
        other = None if device == "cpu" else self.beside(device)
        return own(self, *arguments, **named) if other is None else getattr(other, name)(*arguments, **named)

    return operation
