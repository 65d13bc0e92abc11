"""Memory of one process in another by cuIpcGetMemHandle: the programs of tests/cases that need no simulated kernel."""
from . import bench as b

TITLE = "Memory between processes"

CASES = ("share_blocks", "share_range", "share_with_plain", "share_wrongly", "share_many_times")
WAYS = {
    "reserved up front": {},
    "growing": {"GPUPOOL_POOL_STRATEGY": "auto_growth"},
    "small handles": {"GPUPOOL_POOL_HANDLE": "2MiB"},
    "slabs": {"GPUPOOL_POOL_BACKING": "arena"},
}
# With slabs the range of a block that begins one is known to importers with the preload, and what was freed is known to no driver.
NOT_WITH_SLABS = ("share_range", "share_wrongly")


def check(bench, result):
    programs = b.ROOT / "tests" / "cases" / "programs"
    driver = bench.cuda_library("libcuda.so", "libcuda.so.1")
    program = bench.compile("sharing", programs / "sharing.cpp", programs / "partner.cpp",
                            b.ROOT / "tests" / "preload" / "core" / "program.cpp", driver)
    rows = result.table("Blocks that another process opens", ["case", *WAYS])
    for case in CASES:
        row = [case]
        for way, settings in WAYS.items():
            if way == "slabs" and case in NOT_WITH_SLABS:
                row.append("")
                continue
            outcome = bench.run(b.POOL, [program, case], {**settings, "TEST_POOLED": "1", "GPUPOOL_POOL_SIZE": "1GiB"})
            row.append("passes" if outcome.ok else "FAILS")
            result.expect(outcome.ok, f"{case}, {way}: {outcome.why()}")
        rows.append(row)
