"""Texture objects on the pool's blocks, and one request for most of the card while the pool has 92 % of it."""
import importlib.util

from . import bench as b

TITLE = "Textures, and most of the card"

LAST = 4097  # bytes of the largest texture's row
WAYS = {
    "reserved up front": {"GPUPOOL_POOL_SIZE": "4GiB"},
    "growing": {"GPUPOOL_POOL_STRATEGY": "auto_growth"},
    "slabs": {"GPUPOOL_POOL_SIZE": "4GiB", "GPUPOOL_POOL_BACKING": "arena"},
}
WHOLE = {"reserved up front": {"GPUPOOL_POOL_SIZE": "92%"}, "growing": {"GPUPOOL_POOL_STRATEGY": "auto_growth"}}
JAX = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.75"}


def textures(bench, result):
    program = bench.compile("textures", "textures.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    command = [program, bench.kernels(), 300 if bench.quick else LAST]
    rows = result.table("Texture objects on blocks of every size", ["memory", "result", "pooled"])
    plain = bench.run(b.PLAIN, command)
    rows.append(["driver", plain.out.strip(), ""])
    result.expect(plain.ok and plain.out.endswith("wrong texels 0\n"), f"textures, driver: {plain.out.strip()} {plain.why()}")
    for way, settings in WAYS.items():
        pool = bench.run(b.POOL, command, settings)
        rows.append([f"gpupool, {way}", pool.out.strip(), b.amount(pool.pooled)])
        result.expect((pool.status, pool.out) == (plain.status, plain.out), f"textures, {way}: {pool.out.strip()} {pool.why()}")
        result.expect(pool.pooled > 0, f"textures, {way}: nothing was pooled")


def most(bench, result):
    """One at a time: each wants the card for itself."""
    program = bench.compile("most", "most.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    commands = {"most": ([program], {})}
    if importlib.util.find_spec("jax") and not bench.sim:
        commands["jax_train, 75 %"] = ([bench.python, b.PROGRAMS / "frameworks" / "jax_train.py"], JAX)
    else:
        result.note("JAX is not installed here, or there is no card for it, so not run")
    rows = result.table("75 % of the free memory in one request", ["program", "driver", *WHOLE])
    for name, (command, settings) in commands.items():
        plain = bench.run(b.PLAIN, command, settings, timeout=90)
        result.expect(plain.ok, f"{name}, driver: {plain.out.strip()} {plain.why()}")
        row = [name, "ends" if plain.ok else "FAILS"]
        for way, pool_settings in WHOLE.items():
            pool = bench.run(b.POOL, command, {**settings, **pool_settings}, timeout=90)
            same = (pool.status, pool.out) == (plain.status, plain.out)
            row.append("ends" if same else "FAILS")
            result.expect(same, f"{name}, {way}: {pool.out.strip()} {pool.why()}")
        rows.append(row)


def check(bench, result):
    if not bench.sim:  # the simulated driver has no textures
        textures(bench, result)
    most(bench, result)
