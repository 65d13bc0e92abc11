"""What has to hold in every root: check_NAME(root) yields one sentence for each thing that is wrong.

The programs of this folder are compiled for the root's C library, and lie in roots.PLACE.
"""
import json
import pathlib

from roots import INSTALLED, PLACE

FRONT = f"{INSTALLED}/lib/libgpupool.so"
PROGRAM, SHELL, SETUID = f"{PLACE}/program", f"{PLACE}/shell", f"{PLACE}/id"
SIMULATED, SMALL = f"{PLACE}/simulated", f"{PLACE}/small"  # folders of a libcuda.so.1 each
RIGHT = (0, "program: right\n")
ALONE = f"{PLACE}/alone/libgpupool.so"  # a front without a core beside it
BROKEN = f"{PLACE}/broken/libgpupool.so"  # one beside a core that cannot be loaded
STALE = (f"{PLACE}/stale-core/libgpupool.so", f"{PLACE}/stale-front/libgpupool.so")  # each beside a core that it does not belong to
TRACE = pathlib.Path(__file__).resolve().parents[1] / "data" / "traces" / "gpt_varlen.csv.gz"
REPLAYED = {"requests": 8669, "peak_live_bytes": 9646470144, "oom": 0}

COMMANDS = (("/bin/true",), ("/bin/bash", "-c", "echo $((6 * 7)); ls /nowhere; exit 3"), ("/bin/sh", "-c", "env | wc -l >/dev/null; kill -9 $$"),
            ("/usr/bin/python3", "-c", "import sys, threading; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); sys.exit(4)"),
            (SHELL,), (SHELL, SHELL), (SHELL, PROGRAM), (PROGRAM,))


def check_quiet(root):
    """Programs without CUDA, and CUDA programs where there is no driver: nothing changes at all."""
    ran = 0
    for words in COMMANDS:
        if not root.has(words[0]):
            continue
        ran += 1
        plain, preloaded = root.run(*words), root.run(*words, LD_PRELOAD=FRONT)
        if plain != preloaded:
            yield f"{' '.join(words)}: {plain} became {preloaded}"
        if words == (PROGRAM,) and plain != (0, "program: no driver\n", ""):
            yield f"the program without a driver: {plain}"
    if ran < 4:
        yield f"only {ran} of the programs are there"


def check_setuid(root):
    """The loader gives a program of other rights no preload; its rights stay its own."""
    for user in (1000, 0):
        plain, preloaded = root.run(SETUID, user=user), root.run(SETUID, user=user, LD_PRELOAD=FRONT)
        wanted = "1000 0 clean" if user else "0 0 preloaded"
        if preloaded[:2] != (0, f"id: {wanted}\n"):
            yield f"user {user}: {preloaded} instead of {wanted}"
        if plain[:2] != (0, f"id: {wanted.replace('preloaded', 'clean')}\n"):
            yield f"user {user}, without a preload: {plain}"


def check_pool(root):
    """A CUDA program on the simulated driver gets a pool, and its data is right."""
    for user in (0, 1000):
        plain = root.run(PROGRAM, user=user, LD_LIBRARY_PATH=SIMULATED)
        pooled = root.run(PROGRAM, user=user, LD_LIBRARY_PATH=SIMULATED, LD_PRELOAD=FRONT, GPUPOOL_POOL_STRATEGY="auto_growth")
        if plain != (*RIGHT, ""):
            yield f"without gpupool: {plain}"
        if pooled[:2] != RIGHT or "gpupool: device 0" not in pooled[2]:
            yield f"with gpupool: {pooled}"


def check_command(root):
    """The command runs here, finds its libraries, and its run becomes the program."""
    command = f"{INSTALLED}/bin/gpupool"
    status, output, _ = root.run(command, "--version")
    if status != 0 or not output.startswith("gpupool "):
        yield f"--version: {status} {output}"
    ran = root.run(command, "run", "--strategy", "auto_growth", "--", PROGRAM, LD_LIBRARY_PATH=SIMULATED)
    if ran[:2] != RIGHT or "gpupool: device 0" not in ran[2]:
        yield f"run: {ran}"


def check_replay(root):
    """The command starts, and plays a recorded trace: what it was asked for is a fact of the trace."""
    status, output, errors = root.run(f"{INSTALLED}/bin/gpupool", "--version")
    if status != 0 or not output.startswith("gpupool "):
        yield f"--version: {status} {output} {errors}"
    root.put(TRACE, f"{PLACE}/{TRACE.name}")
    status, output, errors = root.run(f"{INSTALLED}/bin/gpupool", "replay", "--json", f"{PLACE}/{TRACE.name}")
    replayed = json.loads(output) if status == 0 else {}
    if REPLAYED.items() - replayed.items():
        yield f"replay: {status} {output} {errors}"


def check_killed(root):
    """What a killed process counted is in its page, and the command takes the report out of it."""
    pages = {"GPUPOOL_STATS_PAGES": f"{PLACE}/pages"}
    root.path(f"{PLACE}/pages").mkdir()
    killed = root.run(PROGRAM, "kill", LD_LIBRARY_PATH=SIMULATED, LD_PRELOAD=FRONT, GPUPOOL_POOL_STRATEGY="auto_growth", **pages)
    if killed[0] != -9:
        yield f"the program that is killed: {killed}"
    yield from leftover(root.run(f"{INSTALLED}/bin/gpupool", "report", "--leftover", "--json", **pages))


def leftover(outcome):
    """What is wrong with the report of the program that was killed."""
    try:
        [pool] = json.loads(outcome[1])["pools"]
        right = (pool["requests"], pool["live"]) == (8, 8 << 20)
    except (ValueError, KeyError):
        right = False
    if not right:
        yield f"report --leftover: {outcome}"


def fallback(root, front, driver, why=""):
    """The front says once why, in CUDA programs only, and the program is right on the plain driver."""
    ran = root.run(PROGRAM, LD_LIBRARY_PATH=driver, LD_PRELOAD=front)
    lines = ran[2].splitlines()
    if ran[:2] != RIGHT:
        yield f"with {front}: {ran}"
    if len(lines) != 1 or not lines[0].startswith(f"gpupool: {why}") or not lines[0].endswith("; running on the plain driver"):
        yield f"with {front}: said {lines}"
    quiet = root.run(SHELL, PROGRAM, LD_PRELOAD=front)
    if quiet[2] or "no driver" not in quiet[1]:
        yield f"without a driver, with {front}: {quiet}"


def check_fallback(root):
    for front in (ALONE, BROKEN):
        yield from fallback(root, front, SMALL)


def check_mismatch(root):
    """A core with another hook than the front has, and a front of another version than the core, are refused by name."""
    for front in STALE:
        yield from fallback(root, front, SIMULATED, "the core is of another build than this front")


def check_no_core_for_musl(root):
    """The core is of another C library: the program runs as if it were not there."""
    yield from fallback(root, FRONT, SMALL)
    yield from fallback(root, ALONE, SMALL)


ON_GLIBC = (check_quiet, check_setuid, check_pool, check_command, check_killed, check_fallback, check_mismatch)
HERE = (check_quiet, check_pool, check_command, check_replay, check_killed, check_fallback, check_mismatch)  # without the one that may need other rights
ON_ARM = (check_pool, check_replay, check_killed)
ON_MUSL = (check_quiet, check_setuid, check_no_core_for_musl)
