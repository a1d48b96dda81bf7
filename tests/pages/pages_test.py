"""The tables of docs/pages.md: every item of the five documented structs has a row with an existing file, kernel
folders that include that file, directly or not, and existing tests that do, too.

usage: pages_test.py ROOT
"""

import functools
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()

# The names on each page: parameters, fields, members and methods.
ITEMS = {
    "PagedRowIndices": """
        BN page_size pair_cta is_leader rows cta_group eff_page num_pages __init__ get_row tma_copy_v tma_copy_k
        kv_sub_tile_rows populate needs_partial num_v_sub_tiles v_sub_tile_idx eviction_policy num_iters smem_BN
        kv_head_idx elect num_valid_pages k_num_valid_pages depth_offset tma_op stage_base mbar""",
    "TMAProducerPipeline": """
        dtype config is_k pipeline smem bytes elements elements_full KPairType num_qk_stages_effective PairType SMemType
        tile_bytes tile_layout __init__ get_smem get_tile acquire commit_step get_k_smem get_k acquire_k get_v_smem
        get_v acquire_v""",
    "KVConsumerPipeline": """
        dtype config kv_pipeline k_smem_descriptor v_smem_descriptor v_pipeline_release_index full_kv_bytes mma_kv_bytes
        __init__ init wait wait_k wait_v release_k release_v mma_stage pre_increment""",
    "SM100MHA2Q": """
        KVLUTType output_type MaskType ScoreModType SchedulerType config use_score_mod ValidLengthType SinkType
        KVRowOffsetsType _is_cache_length_accurate MaxSeqLenType PartitionType accum_type BM BN cta_group depth group
        k_bytes k_elements KVPipelineType MMA_K MMA_M num_m_mmas num_mma_stages num_q_heads OPipelineType padded_depth
        PositionType qkv_dt_size qkv_type qo_bytes qo_elements ragged simd_size swizzle_granularity UMMA0Type UMMA1Type
        v_bytes_per_mma kernel softmax correction load descriptor_q mma""",
    "KVBufferImpl": """
        out_type in_type shape group_size transpose_b config tensor_core_mma swizzle BN WN BK depth num_threads num_stages
        token_gen load_tile mma_tile smem_iter bounds load_tile_id global_iterator base_layout GlobalTensorType
        GlobalTiledIteratorType LoadTileType MMA_K MMA_N mma_tile_layout MMATileType num_k_tiles num_mmas num_repeats
        num_warps_n SharedIterType SharedTileType SharedWarpTileType simd_width smem_layout thread_layout tiler_layout
        wtile_dim0 wtile_dim1 __init__ get_dtype load_from_dram get_mma_tile copy_to_shared load_from_shared""",
}


def read_tables(text):
    """{struct: [[item, file, kernels, tests], ...]}, of which each cell is its names in backticks."""
    tables = {}
    rows = None
    for line in text.splitlines():
        if line.startswith("## "):
            rows = tables.setdefault(line[3:].strip(), [])
        elif line.startswith("| ") and rows is not None:
            cells = line.strip().strip("|").split(" | ")
            if cells[0].strip() != "item" and set(cells[0].strip()) != {"-"} and not cells[0].startswith(" ---"):
                rows.append([re.findall(r"`([^`]+)`", cell) for cell in cells])
    return tables


@functools.lru_cache(maxsize=None)
def included(path):
    """The files that `path` includes, directly or not, itself among them."""
    found, open_files = {path}, [path]
    while open_files:
        for name in re.findall(r'#include "([^"]+)"', open_files.pop().read_text()):
            for folder in (ROOT / "src", ROOT, ROOT / "include"):
                file = folder / name
                if file.exists() and file not in found:
                    found.add(file)
                    open_files.append(file)
    return found


def kernel_files(family):
    folder = ROOT / "src" / "kernels" / family
    return sorted(folder.rglob("*.hpp")) + sorted(folder.rglob("*.cpp"))


class Pages(unittest.TestCase):
    tables = read_tables((ROOT / "docs" / "pages.md").read_text())
    tests = {path.stem: path for folder in ("src", "testing", "tests") for path in (ROOT / folder).rglob("*_test.cpp")}

    def rows(self):
        for struct in ITEMS:
            self.assertIn(struct, self.tables)
            for row in self.tables[struct]:
                self.assertEqual(4, len(row), f"{struct}: {row}")
                yield struct, *row

    def test_every_item_has_a_row(self):
        for struct, items in ITEMS.items():
            named = {name for row in self.tables[struct] for name in row[0]}
            missing = [item for item in items.split() if item not in named]
            self.assertEqual([], missing, f"of {struct}")

    def test_files_exist(self):
        for struct, items, files, _, _ in self.rows():
            self.assertEqual(1, len(files), f"{struct}, {items}")
            self.assertTrue((ROOT / "src" / files[0]).exists(), f"{struct}, {items}: {files[0]}")

    def test_kernels_include_the_file(self):
        for struct, items, files, kernels, _ in self.rows():
            self.assertTrue(kernels, f"{struct}, {items}: no kernel")
            for kernel in kernels:
                uses = any(ROOT / "src" / files[0] in included(path) for path in kernel_files(kernel))
                self.assertTrue(uses, f"{struct}, {items}: {kernel} does not include {files[0]}")

    def test_tests_include_the_file(self):
        for struct, items, files, _, tests in self.rows():
            with self.subTest(struct=struct, items=items):
                self.assertTrue(tests, "no test")
                for test in tests:
                    self.assertIn(test, self.tests)
                # A test of launches includes their declarations; the source of its name defines them.
                sources = [self.tests[test] for test in tests]
                sources += [path.with_name(path.name.replace("_test.cpp", ".cpp")) for path in sources]
                reached = any(ROOT / "src" / files[0] in included(path) for path in sources if path.exists())
                self.assertTrue(reached, f"no test in {tests} includes {files[0]}")

    def test_nothing_is_for_tests_alone(self):
        self.assertNotIn("test only", (ROOT / "docs" / "pages.md").read_text().lower())

    def test_a_row_that_lacks_is_found(self):
        tables = read_tables("## X\n| item | file | kernels | test |\n| --- | --- | --- | --- |\n| `a`, `b` | `f` |\n")
        self.assertEqual([[["a", "b"], ["f"]]], tables["X"])


if __name__ == "__main__":
    unittest.main()
