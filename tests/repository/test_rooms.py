# SPDX-License-Identifier: Apache-2.0
"""Given a source, its tests are found by name: tests/ mirrors src/."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# Folders in which a source is a pass or a primitive with a test file of its name, and the sources
# that are tested with others: by the file that is named.
ROOMS = {
    "src/tir/transform": {
        "config": "tests/tir/test_pass_list.py",
        "packed_arguments": "tests/tir/transform/test_make_packed_api.py",
    },
    "src/schedule/primitive": {
        "cache": "tests/schedule/primitive/test_cache_read.py",
        "layout": "tests/schedule/primitive/test_transform_layout.py",
        "move": "tests/schedule/primitive/test_compute_at.py",
    },
    "src/relax/transform": {
        "allocate_workspace": "tests/relax/transform/test_fuse_ops_by_pattern.py",
        "apply_empty_mutator": "tests/relax/transform/test_together.py",
        "arena_layout": "tests/relax/transform/test_pack_storages.py",
        "bundle_model_params": "tests/relax/transform/test_lift_transform_params.py",
        "call_site": "tests/relax/transform/test_specialize_prim_func_based_on_call_site.py",
        "calls_op": "tests/relax/transform/test_to_mixed_precision.py",
        "fold_batchnorm_to_conv2d": "tests/relax/transform/test_decompose_ops_for_inference.py",
        "lazy_get_input": "tests/relax/transform/test_lift_transform_params.py",
        "lazy_set_output": "tests/relax/transform/test_lift_transform_params.py",
        "lazy_transform_params": "tests/relax/transform/test_lift_transform_params.py",
        "legalize_ops": "tests/relax/legalize/test_legalize_ops.py",
        "lowering": "tests/relax/transform/test_lowered_runs.py",
        "merge_composite_functions": "tests/relax/transform/test_fuse_ops_by_pattern.py",
        "normalize_global_var": "tests/relax/transform/test_together.py",
        "optimize_layout_transform": "tests/relax/transform/test_alter_op_impl.py",
        "products": "tests/relax/transform/test_adjust_matmul_order.py",
        "recover_attention": "tests/relax/transform/test_recover_structure.py",
        "recover_norm": "tests/relax/transform/test_recover_structure.py",
        "recover_product": "tests/relax/transform/test_recover_structure.py",
        "run_codegen": "tests/relax/transform/test_fuse_ops_by_pattern.py",
        "signature": "tests/relax/transform/test_remove_unused_parameters.py",
        "spelled": "tests/relax/transform/test_recover_structure.py",
        "sub_pixel": "tests/relax/transform/test_apply_sub_pixel.py",
    },
}


@pytest.mark.parametrize("folder", ROOMS)
def test_every_source_has_tests_of_its_name(folder):
    sources = {path.stem for path in (ROOT / folder).glob("*.cc")}
    tests = ROOT / folder.replace("src", "tests", 1)
    named = {name for name in sources if (tests / f"test_{name}.py").exists()}
    assert sorted(sources - named - set(ROOMS[folder])) == [], f"expected {tests}/test_<name>.py"
    assert all((ROOT / where).exists() for where in ROOMS[folder].values())
    assert sorted(set(ROOMS[folder]) - sources) == [], "remove what is gone"
