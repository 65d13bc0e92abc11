"""scripts/check-exports passes two small libraries that keep the rules, and finds each rule that one of them breaks."""
import pathlib
import re
import tempfile
import unittest

from tree import ROOT, run

HOOKS = """// HOOK(symbol, base, version, flags, kind)
#ifndef HOOK
#error "define HOOK"
#endif
HOOK(cuMemAlloc_v2, cuMemAlloc, 3020, 0, POOL)
HOOK(cuMemFree_v2, cuMemFree, 3020, 0, POOL)
"""
FRONT = """
__attribute__((weak)) extern char _r_debug;
__attribute__((visibility("default"))) int cuMemAlloc_v2(void) { return &_r_debug != 0; }
__attribute__((visibility("default"))) int cuMemFree_v2(void) { return 0; }
__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) { return 0; }
"""
CORE = """
#include <stdlib.h>
__attribute__((visibility("default"))) void* gpupool_core_start(void) { return malloc(1); }
"""
FREESTANDING = ("-nostdlib", "-ffreestanding")


class Exports(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        (self.folder / "hooks.def").write_text(HOOKS)
        self.front()
        self.core()

    def link(self, name, text, flags):
        source = self.folder / (name + ".c")
        source.write_text(text)
        made = run("gcc", "-shared", "-fPIC", "-fvisibility=hidden", source, "-o", self.folder / name, *flags)
        self.assertEqual(made.returncode, 0, made.stdout)

    def front(self, more="", flags=FREESTANDING):
        self.link("libgpupool.so", FRONT + more, flags)

    def core(self, more="", flags=()):
        self.link("libgpupool_core.so", CORE + more, flags)

    def command(self, text, flags=()):
        source = self.folder / "gpupool.c"
        source.write_text(text)
        made = run("gcc", source, "-o", self.folder / "gpupool", *flags)
        self.assertEqual(made.returncode, 0, made.stdout)

    def gate(self, *options):
        return run(ROOT / "scripts" / "check-exports", "--folder", self.folder, "--hooks", self.folder / "hooks.def", *options)

    def assert_found(self, finding, *options):
        result = self.gate(*options)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, re.escape(finding))

    def test_two_that_keep_the_rules(self):
        result = self.gate()
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_an_export_too_many(self):
        self.front('__attribute__((visibility("default"))) int planted(void) { return 0; }')
        self.assert_found("libgpupool.so: exports planted")

    def test_a_hook_too_few(self):
        with (self.folder / "hooks.def").open("a") as hooks:
            hooks.write("HOOK(cuMemPlanted, cuMemPlanted, 1, 0, WATCH)\n")
        self.assert_found("libgpupool.so: does not export cuMemPlanted")

    def test_a_hook_with_a_version(self):
        script = self.folder / "version"
        script.write_text("PLANTED { global: cuMemAlloc_v2; cuMemFree_v2; dlsym; local: *; };\n")
        self.front(flags=(*FREESTANDING, f"-Wl,--version-script={script}"))
        self.assert_found("carries a version")

    def test_a_front_that_needs_a_library(self):
        self.front("void* malloc(unsigned long); void* planted(void) { return malloc(1); } void* use = planted;",
                   flags=("-ffreestanding", "-Wl,--no-as-needed"))
        self.assert_found("libgpupool.so: needs libc.so.6")

    def test_a_front_that_runs_when_loaded(self):
        self.front("__attribute__((constructor)) static void planted(void) {}")
        self.assert_found("libgpupool.so: runs code when it is loaded or unloaded (INIT_ARRAY)")

    def test_a_front_with_a_strong_undefined_symbol(self):
        self.front("int planted(void); int (*use)(void) = planted;")
        self.assert_found("libgpupool.so: planted is undefined and not weak")

    def test_a_front_with_a_weak_symbol_of_another_library(self):
        self.front("__attribute__((weak)) int planted(void); int (*use)(void) = planted;")
        self.assert_found("libgpupool.so: planted is undefined and not one of the loader's")

    def test_an_executable_stack(self):
        self.front(flags=(*FREESTANDING, "-Wl,-z,execstack"))
        self.assert_found("libgpupool.so: asks for an executable stack")

    def test_code_that_the_loader_writes_to(self):
        self.core('__asm__(".text\\n.quad gpupool_core_start\\n");', ("-Wl,-z,notext",))
        self.assert_found("libgpupool_core.so: has code that the loader must write to")

    def test_a_core_that_shows_more_than_its_entry(self):
        self.core('__attribute__((visibility("default"))) int planted(void) { return 0; }')
        self.assert_found("libgpupool_core.so: exports planted")

    def test_a_core_that_needs_the_cplusplus_library(self):
        self.core(flags=("-Wl,--no-as-needed", "-lstdc++"))
        self.assert_found("libgpupool_core.so: needs libstdc++.so.6")

    def test_a_core_that_calls_the_driver_by_name(self):
        self.core("int cuInit(unsigned); int (*use)(unsigned) = cuInit;")
        self.assert_found("libgpupool_core.so: leaves cuInit undefined")

    def test_a_core_that_asks_for_private_symbols(self):
        self.core('extern void* _dl_planted(void) __asm__("__libc_early_init"); void* (*use)(void) = _dl_planted;')
        self.assert_found("libgpupool_core.so: asks for GLIBC_PRIVATE")

    def test_a_core_that_waits_by_a_clock_that_can_be_set(self):
        self.core("#include <pthread.h>\nint (*use)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*) = pthread_cond_timedwait;")
        self.assert_found("libgpupool_core.so: may wait by a clock that can be set (pthread_cond_timedwait)")

    def test_a_folder_to_search(self):
        self.core(flags=("-Wl,-rpath,/planted",))
        self.assert_found("libgpupool_core.so: makes the loader search Library runpath: [/planted]")

    def test_a_symbol_of_a_newer_c_library(self):
        self.core("#include <threads.h>\nint (*use)(mtx_t*) = mtx_lock;")
        self.assert_found("which is not in glibc 2.17", "--glibc", "2.17")
        self.assertEqual(self.gate().returncode, 0)

    def test_a_symbol_of_another_library(self):
        self.core(flags=("-Wl,--no-as-needed", "-l:libgcc_s.so.1", "-Wl,-u,_Unwind_Resume"))
        self.assert_found("libgpupool_core.so: asks for GCC_3.0", "--glibc", "2.17")

    def test_a_command_is_held_to_the_same(self):
        self.command("int main(void) { return 0; }", ("-Wl,--no-as-needed", "-lstdc++"))
        self.assert_found("gpupool: needs libstdc++.so.6", "--command", self.folder / "gpupool")


if __name__ == "__main__":
    unittest.main()
