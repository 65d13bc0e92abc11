"""Each gate passes on the tree as it is, and finds each fault planted in a copy of it."""
import os
import unittest

from tree import TreeCase


class Layers(TreeCase):
    def assert_stopped(self, path, include, *words):
        """An #include planted in an own file of this path is found."""
        self.plant(path, f"#include {include}")
        self.assert_found("layers", f"{path}:2:", *(words or (include.strip('"<>'),)))

    def test_the_tree_is_clean(self):
        self.assert_clean("layers")

    def test_an_allowed_include_is_clean(self):
        self.plant("pool/planted.h", "")
        self.plant("device/planted.cpp", '#include "pool/planted.h"\n#include <cuda.h>')
        self.plant("preload/planted.cpp", '#include "pool/planted.h"')
        self.plant("cli/planted.cpp", '#include "pool/planted.h"\n#include <CLI/CLI.hpp>\n#include <nlohmann/json.hpp>')
        self.assert_clean("layers")

    def test_an_arrow_that_points_up(self):
        self.plant("device/planted.h", "")
        self.assert_stopped("pool/planted.cpp", '"device/planted.h"')
        self.assert_stopped("config/planted.cpp", '"device/planted.h"')

    def test_the_command_uses_neither_preload_nor_device(self):
        self.plant("device/planted.h", "")
        self.plant("preload/planted.h", "")
        self.assert_stopped("cli/planted.cpp", '"device/planted.h"')
        self.assert_stopped("cli/other.cpp", '"preload/planted.h"')

    def test_the_pool_sees_of_config_its_options_only(self):
        self.plant("config/planted.h", "")
        self.assert_stopped("pool/planted.cpp", '"config/planted.h"')

    def test_the_front_is_on_its_own(self):
        self.plant("pool/planted.h", "")
        self.assert_stopped("preload/front/planted.c", '"pool/planted.h"')

    def test_angle_brackets_hide_nothing(self):
        self.plant("device/planted.h", "")
        self.assert_stopped("pool/planted.cpp", "<device/planted.h>")

    def test_a_quoted_include_is_a_path_from_the_root(self):
        self.plant("pool/planted.h", "")
        self.assert_stopped("pool/planted.cpp", '"planted.h"')

    def test_a_computed_include(self):
        self.assert_stopped("pool/planted.cpp", "PLANTED", "has to name its file")

    def test_the_pool_knows_no_process(self):
        for header in ("thread", "iostream", "fstream", "unistd.h"):
            self.assert_stopped(f"pool/{header}.cpp", f"<{header}>")

    def test_cuda_stays_in_device_and_preload(self):
        for folder in ("config", "pool", "cli"):
            self.assert_stopped(f"{folder}/planted.cpp", "<cuda.h>")

    def test_json_stays_in_config_the_command_and_the_report(self):
        for folder in ("pool", "device", "preload"):
            self.assert_stopped(f"{folder}/planted.cpp", "<nlohmann/json.hpp>")

    def test_spdlog_stays_behind_the_log(self):
        for folder in ("config", "pool", "device", "preload", "cli"):
            self.assert_stopped(f"{folder}/planted.cpp", "<spdlog/spdlog.h>")

    def test_cli11_stays_in_the_command(self):
        for folder in ("config", "pool", "preload"):
            self.assert_stopped(f"{folder}/planted.cpp", "<CLI/CLI.hpp>")


class Docs(TreeCase):
    def test_the_tree_is_clean(self):
        self.assert_clean("docs")

    def test_a_path_that_does_not_exist(self):
        self.plant("docs/architecture.md", "The planted one is pool/planted.h.")
        self.assert_found("docs", "docs/architecture.md", "pool/planted.h does not exist")

    def test_a_script_that_does_not_exist(self):
        self.plant("README.md", "Run `scripts/planted --all`.")
        self.assert_found("docs", "README.md", "scripts/planted does not exist")

    def test_a_pattern_that_nothing_fits(self):
        self.plant("docs/architecture.md", "There is one `cli/<verb>.planted` for each.")
        self.assert_found("docs", "cli/<verb>.planted does not exist")

    def test_a_source_that_nobody_has(self):
        self.plant("pool/README.md", "Start with `planted.h`.")
        self.assert_found("docs", "pool/README.md", "no file is called planted.h")

    def test_a_link_that_leads_nowhere(self):
        self.plant("docs/architecture.md", "See [there](planted.md#here).")
        self.assert_found("docs", "the link to planted.md leads nowhere")

    def test_an_option_that_does_not_exist(self):
        self.plant("docs/migrating.md", "Set `pool.planted=1`, or GPUPOOL_POOL_PLANTS.")
        self.assert_found("docs", "docs/migrating.md", "no option is called pool.planted")
        self.assert_found("docs", "docs/migrating.md", "no option is called GPUPOOL_POOL_PLANTS")

    def test_a_folder_without_a_readme(self):
        os.remove(self.tree / "scripts" / "README.md")
        self.assert_found("docs", "scripts/: has no README.md")

    def test_a_readme_that_grew(self):
        self.plant("scripts/README.md", "and more\n" * 41)
        self.assert_found("docs", "scripts/README.md", "at most 40 lines")

    def test_a_place_of_one_machine(self):
        self.plant("pool/planted.cpp", "// see /" + "work/main")
        self.assert_found("docs", "pool/planted.cpp:2", "names /" + "work/")

    def test_a_registry_host(self):
        self.plant("scripts/planted", "curl https://pypi." + "org/simple")
        self.assert_found("docs", "scripts/planted:2", "names pypi." + "org")


class Format(TreeCase):
    def setUp(self):
        super().setUp()
        if "skipped" in self.gate("format").stdout:
            self.skipTest("no clang-format 14")

    def test_the_tree_is_clean(self):
        self.assert_clean("format")

    def test_a_line_of_another_shape(self):
        self.plant("pool/planted.cpp", "int  planted( ) ;")
        self.assert_found("format", "pool/planted.cpp:2", "not formatted")


if __name__ == "__main__":
    unittest.main()
