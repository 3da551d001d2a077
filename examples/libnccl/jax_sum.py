"""jax: psum, all_gather, all_to_all and ppermute under shard_map, two GPUs in one process:

    LD_PRELOAD=$PWD/build/libnccl.so.2 python3 examples/libnccl/jax_sum.py
"""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(jax.devices()[:2], ("x",))
x = jnp.arange(8.0)


def over_ranks(f, out):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out, check_vma=False))(x)


print("psum      ", over_ranks(lambda a: jax.lax.psum(a, "x"), P()))
print("all_gather", over_ranks(lambda a: jax.lax.all_gather(a, "x", tiled=True), P()))
print("all_to_all", over_ranks(lambda a: jax.lax.all_to_all(a.reshape(2, 2), "x", 0, 0).ravel(), P("x")))
print("ppermute  ", over_ranks(lambda a: jax.lax.ppermute(a, "x", [(0, 1), (1, 0)]), P("x")))
