# SPDX-License-Identifier: Apache-2.0
"""A sample of mutated ONNX files."""

import warnings

from tvm.relax.frontend.onnx import from_onnx

from .onnx_files import check, seeds


def test_seeds_are_models():
    for data in seeds():
        from_onnx(data)


def test_mutated_files_are_refused_or_imported():
    files = seeds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [c for c in (check(seed, files) for seed in range(1500)) if c] == []
