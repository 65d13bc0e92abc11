"""A card that is nearly full: a program of its own holds the rest of it, so that every allocator meets the same card."""
import contextlib

from . import bench as b


@contextlib.contextmanager
def nearly_full(bench, left):
    """What the programs within are to be run with, and the MiB that are really left to them together, `left` or a little less."""
    program = bench.compile("ballast", "ballast.cpp", bench.cuda_library("libcuda.so", "libcuda.so.1"))
    settings = {"GPUPOOL_SIM_CARD": str(bench.work / "card")} if bench.sim else {}
    process = bench.start(b.PLAIN, [program, left], settings)
    try:
        said = process.stdout.readline()
        if not said.strip().isdigit():
            raise b.Failed(f"the card cannot be filled: {said.strip()}")
        yield settings, int(said)
    finally:
        process.stdin.close()
        process.wait(30)
