# SPDX-License-Identifier: Apache-2.0
"""The node tests of the onnx package: models of one operator or its expansion, with results."""

import functools
import re
import warnings

import numpy as np
import onnx
import tvm
from onnx.backend.test.loader import load_model_tests
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

# Why a case cannot pass yet: the first pattern that matches counts.
REASONS = [
    (r"image_decoder", "decoders of image files"),
    (r"string|strnorm|regex|label_encoder", "tensors of strings, tables of words"),
    (r"tree_ensemble", "tree ensembles"),
    (r"bernoulli|training_dropout", "random numbers"),
    (r"if_opt", "branches that give an absent value"),
    (
        r"optional_get_element_(?!tensor)|optional_has_element_(?!empty_no_input)|identity_(sequ|opt)",
        "optionals and sequences as inputs",
    ),
    (r"sequence_map|sequence_insert|loop16_seq|loop13_seq", "sequences as inputs"),
    (r"resize.*antialias", "antialias with a scale that only running tells"),
    (r"melweightmatrix$", "sizes of a mel matrix that only running tells"),
    (r"loop11$", "a loop that collects values whose shape only running tells"),
    (r"affine_grid_3d.*expanded", "branches of different rank"),
    (r"affine_grid_2d.*expanded", "an operator stays behind in code generation: to be found out"),
    (
        r"attention_4d_(fp16|gqa_with_past_and_present_fp16|gqa_causal_nonpad_decode_fp16)_expanded"
        r"|attention_4d_causal_fp16$"
        r"|attention_4d_(causal|padded_kv|causal_padded_kv|attn_mask_causal)_bf16$"
        r"|attention_3d_causal_bf16$",
        "other values in half precision: to be found out, the rounding of products perhaps",
    ),
    (r"split_to_sequence_1$", "sequences whose length only running tells"),
    (r"to_FLOAT4E2M1", "NaN as a number without one"),
    (r"dft_inverse", "results below the rounding of the reference"),
    (r"scan_sum$", "Scan of opset 8"),
]


@functools.cache
def cases():
    """Name -> case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, from making the references
        return {case.name: case for case in load_model_tests(kind="node")}


def operator_of(case):
    """The operator that a case is about; of an expansion it is only known by name."""
    return case.model.graph.node[0].op_type


def reason(name):
    """Why the case is expected to fail, or None."""
    return next((text for pattern, text in REASONS if re.search(pattern, name)), None)


def _array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _flat(value):
    if isinstance(value, tvm.runtime.Tensor):
        return value.numpy()
    return [_flat(item) for item in value]


def _compare(got, expected, case):
    if isinstance(expected, list):
        assert len(got) == len(expected), f"{len(got)} elements instead of {len(expected)}"
        for a, b in zip(got, expected, strict=True):
            _compare(a, b, case)
        return
    expected = np.asarray(_array(expected))
    assert got.dtype == expected.dtype, f"{got.dtype} instead of {expected.dtype}"
    assert got.shape == expected.shape, f"{got.shape} instead of {expected.shape}"
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
    else:  # ml_dtypes' as well
        wide = (a.astype("float64") for a in (got, expected))
        np.testing.assert_allclose(*wide, rtol=case.rtol, atol=case.atol)


def run(case):
    """Imports, compiles and runs the case; raises when a result is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mod = from_onnx(case.model)
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    for inputs, outputs in case.data_sets:
        args = [tvm.runtime.tensor(np.asarray(_array(value))) for value in inputs]
        results = _flat(vm["main"](*args))
        if len(case.model.graph.output) == 1:
            results = [results]
        for got, expected in zip(results, outputs, strict=True):
            _compare(got, expected, case)


def complaint(case):
    """What is wrong with the case, or None."""
    try:
        run(case)
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text[:200]}"
    return None
