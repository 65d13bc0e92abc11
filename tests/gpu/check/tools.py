"""NVIDIA's tools that put themselves between a program and the driver end with the pool as they do without it."""
import shutil

from . import bench as b

TITLE = "compute-sanitizer and ncu"

SETTINGS = {"gpupool": {"GPUPOOL_POOL_SIZE": "1GiB"}, "gpupool, passthrough": {"GPUPOOL_POOL_STRATEGY": "passthrough"}}


def tool(bench, name):
    """The tool's path, None where it is not installed."""
    own = bench.cuda / "bin" / name
    return str(own) if own.exists() else shutil.which(name)


def commands(bench):
    driver = bench.cuda_library("libcuda.so", "libcuda.so.1")
    client = bench.compile("tool_client", "client.cpp", "-DCLIENT=3", driver)
    kernels = [bench.compile("tool_textures", "textures.cpp", driver), bench.kernels(), 8]
    return {
        "compute-sanitizer": (["--tool", "memcheck", "--error-exitcode", "9"], {"client": [client], "kernels": kernels}),
        "ncu": (["--launch-count", "2"], {"kernels": kernels}),
    }


def told(outcome, word):
    """How the tool ended: its errors, or those of the program below it."""
    return [line for line in (outcome.out + outcome.err).splitlines() if line.startswith(word)]


def check(bench, result):
    rows = result.table("The same program under a tool", ["tool", "program", "driver", *SETTINGS])
    for name, (options, programs) in commands(bench).items():
        path = tool(bench, name)
        if not path:
            result.note(f"{name} is not installed here, so not run")
            continue
        word = "========= ERROR SUMMARY" if name == "compute-sanitizer" else "==ERROR=="
        for program, command in programs.items():
            plain = bench.run(b.PLAIN, [path, *options, *command], timeout=90)
            row = [name, program, f"exit {plain.status}"]
            for title, settings in SETTINGS.items():
                pool = bench.run(b.POOL, [path, *options, *command], settings, timeout=90)
                same = (pool.status, told(pool, word)) == (plain.status, told(plain, word))
                row.append(f"exit {pool.status}")
                result.expect(same, f"{name}, {program}, {title}: exit {plain.status}, {told(plain, word)} became {pool.status}, "
                                    f"{told(pool, word)}: {pool.out[-600:]} {pool.why()}")
                result.expect(title.endswith("passthrough") or pool.pooled > 0,
                              f"{name}, {program}: nothing was pooled")
            rows.append(row)
