"""The tree keeps the layers of ARCHITECTURE.md, and the check notices a tree that does not."""

import argparse
import pathlib
import sys
import tempfile
import unittest

import rules

ROOT = None  # set from the command line


class Repository(unittest.TestCase):
    def test_every_include_points_down(self):
        self.assertGreater(len(rules.sources(ROOT)), 20, "the tree was not found")
        self.assertEqual([], rules.check_layers(ROOT))

    def test_every_file_opens_with_a_comment(self):
        self.assertEqual([], rules.check_opening_comments(ROOT))

    def test_device_code_holds_no_plain_pointer_to_global_memory(self):
        self.assertEqual([], rules.check_global_pointers(ROOT))

    def test_namespace_pagoda_holds_the_public_api_only(self):
        self.assertEqual([], rules.check_public_namespace(ROOT))

    def test_lines_end_at_100_columns(self):
        self.assertEqual([], rules.check_line_length(ROOT))

    def test_rows_of_tables_are_whole_lines(self):
        self.assertEqual([], rules.check_tables(ROOT))

    def test_links_lead_somewhere(self):
        self.assertEqual([], rules.check_links(ROOT))

    def test_examples_and_readme_stay_short(self):
        examples = sorted((ROOT / "examples").glob("*.cpp"))
        self.assertGreater(len(examples), 0)
        limits = {path: 80 for path in examples} | {ROOT / "README.md": 170}
        for path, limit in limits.items():
            self.assertLessEqual(len(path.read_text().splitlines()), limit, path)


class TheCheckItself(unittest.TestCase):
    """Small trees with one fault each."""

    def complaints(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return rules.check_layers(root) + rules.check_opening_comments(root) + rules.check_global_pointers(root) + rules.check_public_namespace(root)

    def test_a_clean_tree_passes(self):
        self.assertEqual(
            [],
            self.complaints({
                "include/pagoda/a.hpp": "// A.\n#include <vector>\n",
                "src/core/b.hpp": '// B.\n#include "pagoda/a.hpp"\n',
                "src/engine/c.cpp": '// C.\n#include "core/b.hpp"\n',
            }),
        )

    def test_an_include_that_points_up_is_found(self):
        found = self.complaints({
            "src/core/b.hpp": '// B.\n#include "engine/c.hpp"\n',
            "src/engine/c.hpp": "// C.\n",
        })
        self.assertEqual(1, len(found), found)
        self.assertIn("src/core/b.hpp: includes src/engine/c.hpp", found[0])

    def test_an_include_of_a_sibling_layer_is_found(self):
        found = self.complaints({
            "src/mask/b.hpp": '// B.\n#include "operand/c.hpp"\n',
            "src/operand/c.hpp": "// C.\n",
        })
        self.assertEqual(1, len(found), found)

    def test_a_family_that_includes_another_is_found(self):
        found = self.complaints({
            "src/kernels/mha_sm90/b.hpp": '// B.\n#include "kernels/mha_sm100/c.hpp"\n',
            "src/kernels/mha_sm100/c.hpp": "// C.\n",
        })
        self.assertEqual(["src/kernels/mha_sm90/b.hpp: includes src/kernels/mha_sm100/c.hpp; families do not include"
                          " each other"], found)

    def test_product_code_that_includes_test_material_is_found(self):
        found = self.complaints({
            "src/engine/b.cpp": '// B.\n#include "testing/oracle/c.hpp"\n',
            "src/engine/b_test.cpp": '// Tests may.\n#include "testing/oracle/c.hpp"\n',
            "testing/oracle/c.hpp": "// C.\n",
        })
        self.assertEqual(["src/engine/b.cpp: includes testing/oracle/c.hpp, which is test material"], found)

    def test_an_internal_name_in_the_public_namespace_is_found(self):
        for declaration in ("struct Inner {", "class Inner;", "enum class Inner : int {", "using Inner = int;",
                            "inline constexpr int Inner = 3;", "int Inner(int x);", "[[nodiscard]] bool Inner() {",
                            "template <class T>\nstruct Inner {", "template <int n>\nint Inner() {",
                            "template <class T>\nconcept Inner = true;"):
            found = self.complaints({
                "include/pagoda/a.hpp": "// A.\nstruct Outer;  // not Inner\n",
                "src/operand/b.hpp": f"// B.\nnamespace pagoda {{\nstruct Outer {{\n  int member;\n}};\n{declaration}\n"
                                     "}  // namespace pagoda\n",
                "src/operand/c.hpp": f"// C.\nnamespace pagoda::operand {{\n{declaration}\n}}  // namespace pagoda::operand\n",
                "src/engine/d.cpp": "// D.\nnamespace pagoda {\nnamespace {\nint own() {}\n}  // namespace\n"
                                    "Outer::Outer() = default;\nint Outer::get(int x) const {\n  return x;\n}\n}  // namespace pagoda\n",
            })
            self.assertEqual(["src/operand/b.hpp: 'Inner' stands in namespace pagoda, which is the public API's"], found,
                             declaration)

    def test_a_public_header_may_not_reach_into_the_library(self):
        found = self.complaints({
            "include/pagoda/a.hpp": '// A.\n#include "core/b.hpp"\n',
            "src/core/b.hpp": "// B.\n",
        })
        self.assertEqual(1, len(found), found)

    def test_a_library_in_the_wrong_place_is_found(self):
        found = self.complaints({"src/engine/a.cpp": "// A.\n#include <fmt/core.h>\n"})
        self.assertEqual(1, len(found), found)

    def test_a_missing_file_an_unknown_library_and_a_missing_comment_are_found(self):
        found = self.complaints({"src/engine/a.cpp": '#include "gone.hpp"\n#include <boost/any.hpp>\n'})
        self.assertEqual(3, len(found), found)

    def test_long_lines_of_code_and_prose_are_found(self):
        long = "x" * 101
        files = {"src/engine/a.cpp": f"// A.\n// {long}\n// clang-format off\n// {long}\n// clang-format on\n",
                 "docs/b.md": f"{long}\n| {long} |\nhttps://{long}\n```\n{long}\n```\n{long}\n"}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = rules.check_line_length(root)
        self.assertEqual(["docs/b.md:1: 101 columns", "docs/b.md:7: 101 columns", "src/engine/a.cpp:2: 104 columns"], found)

    def test_broken_rows_of_tables_are_found(self):
        text = "| a | b |\n| --- | --- |\n| `x\\|y` | c |\n| `x|y` | c |\n| d | e\nf |\n\n| g |\n| --- |\n| h | | i |\n```\n| j\n```\n"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs/a.md").write_text(text)
            found = rules.check_tables(root)
        self.assertEqual(["docs/a.md:4: not a row of 2 cells", "docs/a.md:5: not a row of 2 cells", "docs/a.md:10: not a row of 1 cells"], found)

    def test_links_and_names_of_pages_that_are_not_there_are_found(self):
        files = {"docs/a.md": "# A page: `x`\n[b](b.md) [c](c.md#two-words)\n```\n# No heading\n```\n[d](#no-heading)\n"
                              "[here](#a-page-x) [web](https://x.org/y.md#z)\n",
                 "docs/c.md": "# C\n## One word\n",
                 "src/engine/a.cpp": "// docs/c.md and c.md exist, d.md does not.\n"}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = rules.check_links(root)
        self.assertEqual(["docs/a.md: links to b.md, which does not exist",
                          "docs/a.md: links to #two-words, which c.md has no heading for",
                          "docs/a.md: links to #no-heading, which a.md has no heading for",
                          "src/engine/a.cpp: names d.md, which does not exist"], found)

    def test_plain_pointers_of_device_code_are_found(self):
        found = self.complaints({
            "src/kernels/common/a.hpp": "// A.\nstruct P {\n  const int32_t* rows;\n};\nPAGODA_DEVICE int f(const P& p);\n",
            "src/mask/b.hpp": "// B.\nPAGODA_DEVICE int f() { return *arch::RawGlobal::of(p); }\n",
            "src/schedule/c.hpp": "// C.\nPAGODA_DEVICE int f() { return *reinterpret_cast<const int*>(a); }\n",
            "src/operand/host.hpp": "// Host code.\nint f(const float* p);\n",
            "src/pipeline/d.hpp": '// D.\nPAGODA_DEVICE void f(const char* name, arch::MBarrier* mbar);  // float* p\n',
        })
        self.assertEqual(3, len(found), found)

    def test_a_folder_outside_the_layers_is_found(self):
        found = self.complaints({"src/utils/a.hpp": "// A.\n"})
        self.assertEqual(1, len(found), found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    ROOT = parser.parse_args().root
    unittest.main(argv=[sys.argv[0]])
