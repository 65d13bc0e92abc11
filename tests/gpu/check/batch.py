"""How large a batch fits into a capped card: PyTorch's cache, its expandable segments, and the pool."""
import importlib.util
import json

from . import bench as b

TITLE = "Largest batch under a cap"

CAP = 6144  # MiB
GROWTH = {"GPUPOOL_POOL_STRATEGY": "auto_growth", "GPUPOOL_POOL_MAX": f"{CAP}MiB"}
MODES = {
    "PyTorch default": (b.PLAIN, "own", {}),
    "PyTorch expandable_segments": (b.PLAIN, "own", {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    "pool, cudaMallocAsync": (b.POOL, "other", {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync", **GROWTH}),
    "pool, no PyTorch cache": (b.POOL, "other", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", **GROWTH}),
}


def check(bench, result):
    if not importlib.util.find_spec("torch"):
        return result.note("PyTorch is not there")
    rows = result.table(f"Training on sentences of random length, {CAP:,} MiB of the card", ["mode", "largest batch", "x default", "live there, MiB"])

    def job(mode, keeper, settings):
        return bench.run(mode, [bench.python, b.PROGRAMS / "workloads" / "largest_batch.py", CAP, keeper], settings, timeout=120)

    largest = {}
    for name, outcome in zip(MODES, bench.together([lambda each=each: job(*each) for each in MODES.values()], 4)):
        if result.expect(outcome.ok, f"{name}: {outcome.why()}"):
            said = json.loads(outcome.out.splitlines()[-1])
            largest[name] = said["batch"]
            rows.append([name, said["batch"], f"{said['batch'] / max(1, largest.get('PyTorch default', said['batch'])):.2f}", f"{said['live_mib']:,}"])
    if len(largest) == len(MODES):
        own = max(count for name, count in largest.items() if name.startswith("PyTorch"))
        result.expect(largest["pool, cudaMallocAsync"] >= own, f"the pool fits {largest['pool, cudaMallocAsync']}, PyTorch's own best {own}")
