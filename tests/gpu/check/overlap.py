"""Streams overlap under the pool as they do under PyTorch's own cache."""
import importlib.util
import json
import statistics

from . import bench as b

TITLE = "Overlap of two streams"

LEAST_HIDDEN = 0.9  # of what the default hides, stream-ordered
MODES = {
    "PyTorch default": (b.PLAIN, {}),
    "pool, cudaMallocAsync": (b.POOL, {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}),
    "pool, no PyTorch cache": (b.POOL, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
    "driver, no PyTorch cache": (b.PLAIN, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
}


def check(bench, result):
    if not importlib.util.find_spec("torch"):
        return result.note("PyTorch is not there")
    rows = result.table("Compute beside an independent stream, milliseconds (medians)",
                        ["beside", "mode", "compute alone", "the other alone", "both", "hidden"])
    for other in ("copies", "kernel"):
        hidden, found = {}, {name: [] for name in MODES}
        for _ in range(1 if bench.quick else min(3, bench.rounds)):
            for name, (mode, settings) in MODES.items():
                outcome = bench.run(mode, [bench.python, b.PROGRAMS / "workloads" / "overlap.py", other], settings, timeout=40)
                if result.expect(outcome.ok, f"{other}, {name}: {outcome.why()}"):
                    found[name].append(json.loads(outcome.out))
                    result.expect(mode == b.PLAIN or outcome.pooled > 0, f"{other}, {name}: nothing was pooled")
        for name, said in found.items():
            if not said:
                continue
            a, c, both, hidden[name] = (statistics.median(each[key] for each in said) for key in ("compute_s", "other_s", "both_s", "hidden"))
            rows.append([other, name, f"{a * 1000:.1f}", f"{c * 1000:.1f}", f"{both * 1000:.1f}", f"{hidden[name]:.2f}"])
        if "PyTorch default" in hidden and "pool, cudaMallocAsync" in hidden:
            result.expect(hidden["pool, cudaMallocAsync"] >= LEAST_HIDDEN * hidden["PyTorch default"],
                          f"{other}: {hidden['pool, cudaMallocAsync']:.2f} hidden, the default hides {hidden['PyTorch default']:.2f}")
