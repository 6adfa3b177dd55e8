# SPDX-License-Identifier: Apache-2.0
"""What functions of the runtime compute for imported programs: linear algebra, special functions,
random numbers."""

import numpy as np
import pytest
import tvm_ffi

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import export  # noqa: E402
from tvm.relax.frontend.torch import from_exported_program  # noqa: E402

from .run import assert_same, compiled  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def check(function, *args):
    with torch.no_grad():
        main = compiled(from_exported_program(export(Function(function), args)))
        assert_same(main(*args), function(*args))


def test_factors_and_systems():
    torch.manual_seed(0)
    a, b = torch.randn(2, 4, 4) + 3 * torch.eye(4), torch.randn(4, 3)
    positive = a @ a.mT

    def function(a, b, positive):
        lower = torch.linalg.cholesky(positive)
        lu, pivots = torch.linalg.lu_factor(a)
        return [
            torch.linalg.det(a), *torch.linalg.slogdet(a), torch.linalg.inv(a),
            torch.linalg.solve(a, b), torch.linalg.solve(a, b.mT, left=False),
            torch.linalg.solve(a[0], b[:, 0]), lower, torch.linalg.cholesky(positive, upper=True),
            torch.cholesky_solve(b.expand(2, 4, 3), lower), torch.cholesky_inverse(lower),
            torch.linalg.solve_triangular(a, b.expand(2, 4, 3), upper=True),
            torch.linalg.solve_triangular(a, b.mT.expand(2, 3, 4), upper=False, left=False,
                                          unitriangular=True),
            *torch.linalg.lu(a[:, :3]), lu, pivots,
            torch.linalg.lu_solve(lu, pivots, b.expand(2, 4, 3), adjoint=True),
            torch.linalg.lu_solve(lu, pivots, b.mT.expand(2, 3, 4), left=False),
            *torch.linalg.qr(a[:, :3]), *torch.linalg.qr(a[:, :, :3], mode="complete"),
            torch.linalg.matrix_exp(a), torch.linalg.pinv(a[:, :3]),
            torch.linalg.matrix_power(a, -2),
        ]  # fmt: skip

    check(function, a, b, positive)


def test_symmetric_factors():
    torch.manual_seed(0)
    a, b = torch.randn(3, 5, 5), torch.randn(5, 2)
    a = a + a.mT
    a[1].fill_diagonal_(0.0)  # blocks of two
    a[2] = 0.0
    a[2, 1, 0] = a[2, 0, 1] = 1.0

    def function(a, b):
        factors, pivots, info = torch.linalg.ldl_factor_ex(a)
        return factors, pivots, info, torch.linalg.ldl_solve(factors[:2], pivots[:2], b)

    assert int((function(a, b)[1] < 0).sum()) >= 6 and function(a, b)[2].tolist() == [0, 0, 3]
    check(function, a, b)


@pytest.mark.parametrize("pivots", [[0, 1], [3, 1], [-1, 1], [1, -2]])
def test_pivots_that_no_factors_have(pivots):
    solve = tvm_ffi.get_global_func("relax.run.linalg.ldl_solve")
    factors = torch.eye(2)
    with pytest.raises(ValueError, match="ldl_solve: expected pivots from 1 to 2, or pairs"):
        solve(factors, torch.tensor(pivots, dtype=torch.int32), factors, torch.empty(2, 2))


def test_spectra():
    torch.manual_seed(0)
    a = torch.randn(2, 5, 4)
    low_rank = torch.randn(4, 2) @ torch.randn(2, 6)
    square = torch.randn(5, 5)

    def function(a, low_rank, square):
        symmetric = square + square.mT
        u, s, vh = torch.linalg.svd(a)
        p, t, qh = torch.linalg.svd(low_rank, full_matrices=False)
        w, v = torch.linalg.eigh(symmetric)
        z, e = torch.linalg.eig(square)
        # Vectors have no sign of their own: what they make together has.
        return [
            s, u[..., :4] @ torch.diag_embed(s) @ vh, u.mT @ u, t, p @ torch.diag(t) @ qh, p.mT @ p,
            w, v @ torch.diag(w) @ v.mT, v.mT @ v, torch.linalg.eigvalsh(symmetric),
            torch.view_as_real(e @ torch.diag(z)) - torch.view_as_real(square.to(e.dtype) @ e),
            torch.sort(torch.view_as_real(torch.linalg.eigvals(square))[:, 0])[0],
            torch.linalg.matrix_rank(low_rank), torch.linalg.cond(square),
        ]  # fmt: skip

    args = (a, low_rank, square)
    main = compiled(from_exported_program(export(Function(function), args)))
    ours, theirs = [x.numpy() for x in main(*args)], function(*args)
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_allclose(x, y.numpy(), atol=2e-4, rtol=1e-3, err_msg=str(i))


def test_special_functions():
    x = torch.linspace(-2.5, 6, 18)
    n = torch.arange(18) % 7
    names = [name for name in dir(torch.special) if "polynomial" in name]
    unary = ["airy_ai", "bessel_y0", "bessel_y1", "erfcx", "log_ndtr", "modified_bessel_k0",
             "modified_bessel_k1", "ndtri", "scaled_modified_bessel_k0",
             "scaled_modified_bessel_k1"]  # fmt: skip

    def function(x, n):
        results = [getattr(torch.special, name)(x, n) for name in names]
        results += [getattr(torch.special, name)(x) for name in unary]
        a, b = x.abs()[:, None], x.abs()
        return [*results, torch.igamma(a, b), torch.igammac(a, b)]

    check(function, x, n)


def test_random_numbers_have_their_distributions_and_follow_the_seed():
    n = 20000

    def function(x):
        return [
            torch.rand(n), torch.randn(n), torch.rand(n), torch.randint(3, 9, (n,)),
            torch.randperm(n), torch.bernoulli(x), x.clone().exponential_(2.0),
            torch.normal(x, 0.5), x.clone().uniform_(-1.0, 3.0), x.clone().geometric_(0.25),
        ]  # fmt: skip

    x = torch.full((n,), 0.3)
    main = compiled(from_exported_program(export(Function(function), (x,))))
    seed = tvm_ffi.get_global_func("relax.run.random.seed")
    seed(1)
    first = [value.numpy() for value in main(x)]
    uniform, normal, other, integers, order, coins, exponential, shifted, wide, turns = first
    assert not np.array_equal(uniform, other)
    assert uniform.min() >= 0 and uniform.max() < 1 and wide.min() >= -1 and wide.max() <= 3
    assert set(integers) == set(range(3, 9)) and turns.min() == 1
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    means = {0.5: uniform, 0.0: normal, 5.5: integers, 0.3: coins, 1.0: wide, 4.0: turns}
    for mean, values in means.items():
        assert abs(values.mean() - mean) < 0.1, mean
    assert abs(exponential.mean() - 0.5) < 0.05 and abs(shifted.std() - 0.5) < 0.05
    assert abs(normal.std() - 1) < 0.05
    again = [value.numpy() for value in main(x)]
    assert not np.array_equal(again[0], uniform)
    seed(1)
    for a, b in zip(first, main(x), strict=True):
        np.testing.assert_array_equal(a, b.numpy())


def test_shapes_that_do_not_fit_are_refused():
    lu = tvm_ffi.get_global_func("relax.run.linalg.cholesky")
    a, info = torch.ones(2, 3), torch.zeros((), dtype=torch.int32)
    with pytest.raises(ValueError, match="cholesky: expected square matrices, got 2 x 3"):
        lu(a, a, info)
    with pytest.raises(TypeError, match="expected float32 or float64, got float16"):
        lu(torch.ones(2, 2).half(), torch.ones(2, 2).half(), info)
