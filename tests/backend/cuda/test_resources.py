# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's compiler says of kernels of default rules: nothing of theirs is in slow memory. The
whole table: python -m tests.backend.cuda."""

import pytest

from tests.backend.cuda.attention import attention
from tests.backend.cuda.resources import (
    FUNCTIONS,
    TYPES,
    binary_of,
    frames,
    is_one_kernel,
    registers,
)
from tests.backend.cuda.test_codegen import needs_nvrtc


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_everything_is_in_registers(name, dtype, arch, tmp_path):
    if not is_one_kernel(name, dtype):
        pytest.skip("attention of float32 is several kernels")
    binary = binary_of(FUNCTIONS[name](dtype), arch, tmp_path)
    assert frames(binary) and not any(frames(binary))
    assert registers(binary) and max(registers(binary)) <= 255


@needs_nvrtc
def test_the_largest_tile_of_attention_is_nearly_in_registers(tmp_path):
    """A warp has 32 rows of 128 sums and 64 scores; what is needed outside of the loop may be
    elsewhere."""
    found = frames(binary_of(attention(4, 4096, 16, 128, causal="TopLeft"), "sm_90a", tmp_path))
    assert found and max(found) <= 64
