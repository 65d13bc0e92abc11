"""Training and free arithmetic in JAX, on batches of changing size: few requests, large ones, freed as Python drops them.

    python3 jax_steps.py [--steps N]

Which allocator JAX uses is set outside, by XLA_PYTHON_CLIENT_ALLOCATOR. Prints one line with the last loss.
"""
import argparse
import random
import time

import jax
import jax.numpy as jnp

WIDTH = 4096
LAYERS = 6
BATCHES = (1024, 3072, 4096, 7168, 10_240)  # each is compiled once


def forward(weights, batch):
    for weight in weights:
        batch = batch + jax.nn.gelu(batch @ weight)
    return batch


def loss_of(weights, batch):
    return ((forward(weights, batch) - 1) ** 2).mean()


@jax.jit
def step(weights, momenta, batch):
    loss, slopes = jax.value_and_grad(loss_of)(weights, batch)
    momenta = [0.9 * old + slope for old, slope in zip(momenta, slopes)]
    return [weight - 0.01 * momentum for weight, momentum in zip(weights, momenta)], momenta, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    steps = parser.parse_args().steps
    random.seed(1)
    keys = jax.random.split(jax.random.PRNGKey(1), LAYERS + 1)
    weights = [jax.random.normal(key, (WIDTH, WIDTH), jnp.float32) / WIDTH for key in keys[:-1]]
    momenta = [jnp.zeros_like(weight) for weight in weights]
    kept = []
    start = time.time()
    for number in range(steps):
        rows = random.choice(BATCHES)
        batch = jax.random.normal(jax.random.fold_in(keys[-1], number), (rows, WIDTH), jnp.float32)
        weights, momenta, loss = step(weights, momenta, batch)
        # What a person does between the steps, without jit: each operation is a request.
        for _ in range(random.randrange(4, 20)):
            part = batch[: random.choice((256, 512, 768))]
            scaled = part * 2 + part.mean(0)
            if random.random() < 0.3:
                kept.append(scaled)
        while len(kept) > 40:
            kept.pop(random.randrange(len(kept)))
    print(f"jax_steps: {time.time() - start:.2f} s, last loss {float(loss):.4f}, {jax.devices()[0].platform}")


main()
