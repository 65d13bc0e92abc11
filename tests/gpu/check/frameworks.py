"""Frameworks give the same results with the pool, and what they take is pooled."""
import importlib.util

from . import bench as b

TITLE = "Frameworks"

# name, module it needs, program and arguments, settings, whether the pool must serve its memory
ASYNC = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
JAX = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.05"}  # several processes share the card
CASES = (
    ("JAX", "jax", ("jax_train.py",), JAX, False),
    ("JAX, cuda_async", "jax", ("jax_train.py",), {**JAX, "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}, True),
    ("JAX, platform", "jax", ("jax_train.py",), {**JAX, "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, True),
    ("CuPy", "cupy", ("cupy_pools.py", "default"), {}, True),
    ("CuPy, malloc_async", "cupy", ("cupy_pools.py", "malloc_async"), {}, True),
    ("Numba", "numba", ("numba_kernel.py",), {}, True),
    ("torch.compile", "torch", ("torch_compile.py",), {}, True),
    ("PyTorch, two streams", "torch", ("torch_streams.py",), {}, True),
    ("PyTorch, two streams, cudaMallocAsync", "torch", ("torch_streams.py",), ASYNC, True),
    ("PyTorch, CUDA graphs", "torch", ("torch_graphs.py",), {}, True),
    ("PyTorch, CUDA graphs, cudaMallocAsync", "torch", ("torch_graphs.py",), ASYNC, True),
    ("PyTorch, memory_stats, cudaMallocAsync", "torch", ("torch_stats.py",), ASYNC, True),
)


def check(bench, result):
    rows = result.table("Frameworks, the same program with and without the pool",
                        ["framework", "same result", "result", "pooled", "passed through", "fences"])

    def job(case):
        name, module, (program, *arguments), settings, _ = case
        command = [bench.python, b.PROGRAMS / "frameworks" / program, *arguments]
        cache = bench.work / "caches" / program  # compilers' caches: not the machine's own
        settings = {**settings, "GPUPOOL_POOL_SIZE": "4GiB", "TORCHINDUCTOR_CACHE_DIR": str(cache), "TRITON_CACHE_DIR": str(cache / "triton")}
        return case, bench.run(b.PLAIN, command, settings, timeout=90), bench.run(b.POOL, command, settings, timeout=90)

    there = [case for case in CASES if importlib.util.find_spec(case[1])]
    missing = sorted({case[1] for case in CASES} - {case[1] for case in there})
    if missing:
        result.note(f"not installed here, so not run: {', '.join(missing)}")
    result.expect(there, "none of the frameworks is installed here")
    for (name, _, _, _, pooled), plain, pool in bench.together([lambda case=case: job(case) for case in there], 6):
        same = plain.ok and pool.ok and plain.out == pool.out
        rows.append([name, "yes" if same else "NO", " / ".join(pool.out.split("\n")).strip(" /")[:90], b.amount(pool.pooled),
                     b.amount(pool.passed), pool.pool.get("fences", 0)])
        result.expect(plain.ok, f"{name}, without the pool: {plain.why()}")
        result.expect(pool.ok, f"{name}, with the pool: {pool.why()}")
        if plain.ok and pool.ok:
            result.expect(plain.out == pool.out, f"{name}: {plain.out.strip()!r} became {pool.out.strip()!r}")
            result.expect(pool.pooled > 0 or not pooled, f"{name}: nothing was pooled")
