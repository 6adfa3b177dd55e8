# SPDX-License-Identifier: Apache-2.0
"""LSTM against PyTorch, and against NumPy where PyTorch has no such option."""

import itertools

import numpy as np
import pytest
import torch
import tvm.topi.testing as reference
from tvm import te, tir, topi

from .checking import check, values

TIME, BATCH, CHANNELS, HIDDEN, SHOWN = 5, 2, 3, 4, 6
X = values(TIME, BATCH, CHANNELS)
WI, BI, BH = values(4 * HIDDEN, CHANNELS, seed=1), *(values(4 * HIDDEN, seed=s) for s in (3, 4))
WH = values(4 * HIDDEN, HIDDEN, seed=2)
H0, C0 = values(BATCH, HIDDEN, seed=5), values(BATCH, HIDDEN, seed=6)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def test_lstm():
    network = torch.nn.LSTM(CHANNELS, HIDDEN)
    weights = {"weight_ih_l0": WI, "weight_hh_l0": WH, "bias_ih_l0": BI, "bias_hh_l0": BH}
    network.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()})
    states = tuple(torch.from_numpy(s)[None] for s in (H0, C0))
    with torch.no_grad():
        hidden, (_, cell) = network(torch.from_numpy(X), states)
    arrays = [X, WI, WH, BI, BH, H0, C0]
    hs, cs = reference.lstm_python(*arrays)
    np.testing.assert_allclose(hs, hidden.numpy(), **CLOSE)
    np.testing.assert_allclose(cs[-1], cell[0].numpy(), **CLOSE)
    for symbolic in (False, True):
        check(topi.nn.lstm, arrays, [hs, cs], symbolic=symbolic, **CLOSE)


@pytest.mark.parametrize(
    "reverse, layout", list(itertools.product([False, True], ["IFGO", "IOFG"]))
)
def test_options_of_lstm(reverse, layout):
    peepholes = [values(BATCH, HIDDEN, seed=s) for s in (7, 8, 9)]
    wh, proj = values(4 * HIDDEN, SHOWN, seed=10), values(SHOWN, HIDDEN, seed=11)
    options = {"reverse": reverse, "weight_layout": layout}
    given = dict(zip(("proj", "p_i", "p_f", "p_o"), [proj, *peepholes], strict=True))
    expected = reference.lstm_python(X, WI, wh, **given, g_act="relu", **options)
    relu = lambda x: tir.max(x, tir.const(0, "float32"))
    build = lambda x, wi, wh, *rest: topi.nn.lstm(
        x, wi, wh, **dict(zip(given, rest, strict=True)), g_act=relu, f_act=tir.sigmoid, **options
    )
    check(build, [X, WI, wh, *given.values()], expected, **CLOSE)


def test_lstm_of_what_does_not_fit():
    x, wi, wh = (te.placeholder(a.shape) for a in (X, WI, WH))
    with pytest.raises(ValueError, match=r"lstm: expected weights of states shaped \(16, 4\)"):
        topi.nn.lstm(x, wi, te.placeholder((16, 5)))
    with pytest.raises(ValueError, match="lstm: expected an order of I, F, G and O"):
        topi.nn.lstm(x, wi, wh, weight_layout="IFGX")
    with pytest.raises(ValueError, match="lstm: expected rows of four gates"):
        topi.nn.lstm(x, te.placeholder((15, 3)), wh)
    with pytest.raises(ValueError, match=r"lstm: expected a bias shaped \(16,\), got \(4,\)"):
        topi.nn.lstm(x, wi, wh, te.placeholder((4,)))
