"""The gates over cases and compatibility pass on the tree as it is, and find what is planted in a copy of it."""
import re
import unittest

from tree import TreeCase


class Cases(TreeCase):
    def test_the_tree_is_clean(self):
        self.assert_clean("cases")

    def test_a_case_without_a_test(self):
        self.plant("tests/cases/README.md", "| 99 | a planted fault | |")
        self.assert_found("cases", "no test is tagged [case-" + "99]")

    def test_a_tag_without_a_case(self):
        self.plant("tests/pool/planted.cpp", 'TEST_CASE("planted", "[case-' + '98]") {}')
        self.assert_found("cases", "tests/pool/planted.cpp: planted", "case 98 is not in")


class Compatibility(TreeCase):
    PAGE = "docs/compatibility.md"

    def edit(self, pattern, replacement):
        page = self.tree / self.PAGE
        text, count = re.subn(pattern, replacement, page.read_text(), count=1)
        self.assertEqual(count, 1)
        page.write_text(text)

    def test_the_tree_is_clean(self):
        self.assert_clean("compatibility")

    def test_a_hook_without_a_row(self):
        self.plant("preload/hooks.def", "HOOK(cuPlanted_v2, cuPlanted, 3020, 0, POOL)")
        self.assert_found("compatibility", "cuPlanted stands in 0 rows")

    def test_a_function_in_two_rows(self):
        self.plant(self.PAGE, "| `cuMemGetInfo` | told the truth | | |")
        self.assert_found("compatibility", "cuMemGetInfo stands in 2 rows")

    def test_the_wrong_word(self):
        self.edit(r"(`cuMemGetInfo` \|) told the truth", r"\1 pooled")
        self.assert_found("compatibility", "cuMemGetInfo is told the truth, not pooled")

    def test_a_test_that_does_not_mention_it(self):
        self.edit(r"(`cuMemGetInfo` \| told the truth \|)[^|]*", r"\1 `tests/test_main.cpp` ")
        self.assert_found("compatibility", "none of the tests named mentions cuMemGetInfo")


if __name__ == "__main__":
    unittest.main()
