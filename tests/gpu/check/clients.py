"""Every way in which a program reaches the driver gives the same results with the pool, and is served by it."""
from . import bench as b

TITLE = "Ways to the driver"


def ways(bench):
    shared = bench.cuda_library("libcudart.so", "libcudart.so.13")
    archive = bench.cuda_library("libcudart_static.a", "libcudart_standin.a")
    driver = bench.cuda_library("libcuda.so", "libcuda.so.1")
    rest = ("-ldl", "-lrt")
    return {
        "shared cudart": (1, shared, f"-Wl,-rpath,{shared.parent}"),
        "static cudart": (1, archive, *rest),
        "dlopen cudart": (2, f"-Wl,-rpath,{shared.parent}", *rest),
        "driver, linked": (3, driver, *rest),
        "driver, dlsym": (4, *rest),
        "driver, cuGetProcAddress": (5, *rest),
    }


def check(bench, result):
    rows = result.table("Ways to the driver, the same program with and without the pool",
                        ["way", "same result", "pooled", "passed through"])

    def job(number, name, way, options):
        program = bench.compile(f"client{number}", "client.cpp", f"-DCLIENT={way}", *options)
        return name, bench.run(b.PLAIN, [program]), bench.run(b.POOL, [program], {"GPUPOOL_POOL_SIZE": "1GiB"})

    jobs = [lambda n=n, name=name, way=way: job(n, name, way[0], way[1:]) for n, (name, way) in enumerate(ways(bench).items())]
    for name, plain, pool in bench.together(jobs, 2 if bench.sim else 6):
        same = plain.ok and pool.ok and plain.out == pool.out
        rows.append([name, "yes" if same else "NO", b.amount(pool.pooled), b.amount(pool.passed)])
        result.expect(plain.ok, f"{name}, without the pool: {plain.why()}")
        result.expect(pool.ok, f"{name}, with the pool: {pool.why()}")
        result.expect(plain.out == pool.out, f"{name}: '{plain.out.strip()}' became '{pool.out.strip()}'")
        result.expect(pool.pooled > 0, f"{name}: nothing was pooled")
