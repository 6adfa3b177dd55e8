# SPDX-License-Identifier: Apache-2.0
"""A part of the node tests of the onnx package; `python -m tests.frontend.onnx` runs all."""

import random

import pytest

from .node_cases import cases, complaint, is_expected, operator_of, reason


def sample():
    """One case of each operator, and some more; the same every time."""
    rng = random.Random(0)
    by_operator = {}
    for name, case in cases().items():
        if not name.endswith("_expanded") and "/" not in name:
            by_operator.setdefault(operator_of(case), []).append(name)
    chosen = {rng.choice(names) for names in by_operator.values()}
    return sorted(chosen | set(rng.sample(sorted(cases()), 40)))


@pytest.mark.parametrize("name", sample())
def test_node(name):
    said = complaint(cases()[name])
    assert is_expected("static", name, said), said or f"passes, but: {reason('static', name)}"


OPEN = """attention_3d_diff_heads_with_past_and_present attention_4d_gqa_with_past_and_present
batchnorm_epsilon linear_attention_gated_delta linear_attention_gated_delta_beta_scalar
causal_conv_with_state_with_bias_and_past_state
reduce_log_sum_asc_axes_expanded convtranspose_autopad_same convtranspose_group_2
convtranspose_output_shape split_to_sequence_2 deform_conv_with_mask_bias constant_pad_axes det_nd
scan_sum"""


@pytest.mark.parametrize("shapes", ["symbolic", "unknown"])
@pytest.mark.parametrize(
    "name", [*(f"test_{name}" for name in OPEN.split()), "simple/test_expand_shape_model1",
             "simple/test_sequence_model5"]
)  # fmt: skip
def test_sizes_that_only_running_tells(name, shapes):
    """What needs them in windows, axes, sequences and loops."""
    assert complaint(cases()[name], shapes) is None
