"""What another process sees of the pool: the card's used memory rises once, by pool.size, and then stays."""
import subprocess
import threading
import time

from . import bench as b

TITLE = "Used memory from outside"

POOL_MIB = 16 * 1024
HANDLE_MIB = 64  # no handle that is chosen for a pool of this size is larger


def used_mib():
    """nvidia-smi's figure, once it stands still."""
    def ask():
        text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"],
                              capture_output=True, text=True, timeout=20, check=True).stdout
        return int(text.split()[0])
    before = ask()
    for _ in range(20):
        time.sleep(0.3)
        now = ask()
        if now == before:
            break
        before = now
    return now


def check(bench, result):
    settings = {"GPUPOOL_POOL_SIZE": f"{POOL_MIB}MiB"}
    process = bench.start(b.POOL, [bench.python, b.PROGRAMS / "frameworks" / "torch_steps.py"], settings)
    rows = result.table(f"nvidia-smi's used memory, pool.size {POOL_MIB:,} MiB", ["moment", "MiB"])
    seen = {}
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        # The program says where it is and waits for a line.
        for line in process.stdout:
            if line.startswith("at "):
                moment = line[3:].strip()
                seen[moment] = used_mib()
                rows.append([moment, f"{seen[moment]:,}"])
                process.stdin.write("\n")
                process.stdin.flush()
        process.wait(timeout=20)
    finally:
        watchdog.cancel()
        process.kill()
    moments = list(seen)
    if len(moments) < 4:
        raise b.Failed(f"the program ended after {moments}")
    rise = seen[moments[1]] - seen[moments[0]]
    result.expect(abs(rise - POOL_MIB) <= HANDLE_MIB, f"the first allocation raised it by {rise} MiB, not by {POOL_MIB}")
    flat = [seen[moment] for moment in moments[2:]]
    result.expect(max(flat) - min(flat) <= 2, f"it moved while the program ran: {flat}")
