# SPDX-License-Identifier: Apache-2.0
"""Instructions of sm_90a on a GPU: tensors that are copied by their description, clusters, products
of warpgroups."""

import numpy as np
import pytest
import tvm

from tests.backend.cuda import hopper
from tests.gpu.test_kernels import run
from tests.gpu.test_matrix_units import check

pytestmark = pytest.mark.skipif(
    not tvm.cuda(0).exist or tvm.cuda(0).compute_version != "9.0", reason="no Hopper GPU"
)


@pytest.fixture(autouse=True)
def by_warpgroups():
    with tvm.transform.PassContext(config={"tir.warpgroup_products": True}):
        yield


def test_the_product_by_hand():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float16") for s in ((64, 256), (256, 128)))
    got = run(hopper.product, a, b, np.full((64, 128), np.nan, "float32"))
    expected = a.astype("float64") @ b.astype("float64")
    assert np.linalg.norm(got - expected) <= 1e-6 * np.linalg.norm(expected)


def test_clusters():
    a = np.random.default_rng(0).standard_normal((8, 64)).astype("float32")
    got = run(hopper.clusters, a, np.full((8, 64), np.nan, "float32"))
    rows = np.arange(8)
    np.testing.assert_array_equal(got, a[rows // 2] + (rows % 2)[:, None].astype("float32"))


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, n, k", [(1024, 2048, 512), (1000, 520, 264), (4096, 4096, 192)])
def test_products_by_warpgroups(m, n, k, trans_a, trans_b):
    check(m, n, k, trans_a=trans_a, trans_b=trans_b)
    check(m, n, k, "bfloat16", "bfloat16", trans_a=trans_a, trans_b=trans_b, last="bias")


@pytest.mark.parametrize("m, n, k", [(64, 4096, 4096), (256, 256, 8192), (8, 512, 64)])
def test_few_tiles(m, n, k):
    check(m, n, k)
    check(m, n, k, batch=3)


def test_bytes():
    check(512, 1024, 512, "int8", "int32", trans_b=True)
    check(512, 1040, 528, "uint8", "int32", trans_b=True)
