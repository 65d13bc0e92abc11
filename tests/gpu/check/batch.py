"""How large a batch fits into what is left of a card: PyTorch's cache, its expandable segments, and the pool."""
import importlib.util
import json

from . import bench as b
from .ballast import nearly_full

TITLE = "Largest batch on a card that is nearly full"

LEFT = 8192  # MiB, of which contexts and code take some hundred
LONGEST = 40  # seconds for one mode
# Nothing kept free for others, as PyTorch's cache keeps nothing.
GROWTH = {"GPUPOOL_POOL_STRATEGY": "auto_growth", "GPUPOOL_POOL_HEADROOM": "0"}
MODES = {
    "PyTorch default": (b.PLAIN, {}),
    "PyTorch expandable_segments": (b.PLAIN, {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    "pool, cudaMallocAsync": (b.POOL, {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync", **GROWTH}),
    "pool, no PyTorch cache": (b.POOL, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", **GROWTH}),
}


def check(bench, result):
    if not importlib.util.find_spec("torch"):
        return result.note("PyTorch is not there")
    largest = {}
    # One after the other: what is left of the card is all of it each one's.
    with nearly_full(bench, LEFT) as (_, left):
        rows = result.table(f"Training on sentences of random length, {left:,} MiB of the card left",
                            ["mode", "largest batch", "x default", "tensors there, MiB", "pool reserved, MiB", "s"])
        for name, (mode, settings) in MODES.items():
            outcome = bench.run(mode, [bench.python, b.PROGRAMS / "workloads" / "largest_batch.py"], settings, timeout=LONGEST)
            if not result.expect(outcome.ok, f"{name}: {outcome.why()}"):
                continue
            said = json.loads(outcome.out.splitlines()[-1])
            largest[name] = said["batch"]
            ratio = said["batch"] / largest["PyTorch default"] if largest.get("PyTorch default") else float("nan")
            held = outcome.pool.get("reserved.peak")
            rows.append([name, said["batch"], f"{ratio:.2f}", f"{said['live_mib']:,}" if said["live_mib"] else "", f"{held / b.MIB:,.0f}" if held else "",
                         f"{outcome.seconds:.0f}"])
            result.expect(mode == b.PLAIN or outcome.pooled > 0, f"{name}: nothing was pooled")
    if len(largest) == len(MODES):
        own = max(count for name, count in largest.items() if name.startswith("PyTorch"))
        result.expect(largest["pool, cudaMallocAsync"] >= own, f"the pool fits {largest['pool, cudaMallocAsync']}, PyTorch's own best {own}")
