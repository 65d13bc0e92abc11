"""Stands in for what starts the ranks of a job: sets the variables that the real one sets, and nothing else of it.

    launcher.py KIND RANKS PER_NODE PROGRAM...      KIND: torchrun, mpirun, srun or spawn

`spawn` starts workers as Ray and multiprocessing do, from a parent that holds the environment, with no rank. Ranks run eight at a time. The
exit status is that of the first rank that failed.
"""
import concurrent.futures
import os
import subprocess
import sys

VARIABLES = {
    "torchrun": lambda rank, local, size: {"RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": size, "GROUP_RANK": (rank - local) // 8},
    "mpirun": lambda rank, local, size: {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": local, "OMPI_COMM_WORLD_SIZE": size},
    "srun": lambda rank, local, size: {"SLURM_PROCID": rank, "SLURM_LOCALID": local, "SLURM_NTASKS": size},
    "spawn": lambda rank, local, size: {},
}

kind, size, per_node, words = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]


def start(rank):
    variables = VARIABLES[kind](rank, rank % per_node, size)
    return subprocess.run(words, env={**os.environ, **{name: str(value) for name, value in variables.items()}}, check=False).returncode


with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
    failed = [status for status in pool.map(start, range(size)) if status]
sys.exit(failed[0] if failed else 0)
