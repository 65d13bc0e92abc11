"""A small training loop in JAX, with batches of changing size; sums of whole numbers, so that the result is exact."""
import jax
import jax.numpy as jnp


@jax.jit
def step(weights, batch):
    hidden = jnp.maximum(batch @ weights, 0)
    return (weights + hidden.sum(axis=0, keepdims=True)) % 17, hidden.sum() % 9973


weights = (jnp.arange(256 * 256, dtype=jnp.int32) % 13).reshape(256, 256)
total = 0
for size in (32, 500, 64, 1200, 32, 2000):
    batch = (jnp.arange(size * 256, dtype=jnp.int32) % 11).reshape(size, 256)
    weights, part = step(weights, batch)
    total += int(part)
print("jax_train:", total, int(weights.sum()), jax.devices()[0].platform)
