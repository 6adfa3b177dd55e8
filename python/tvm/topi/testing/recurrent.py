# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks."""

import numpy as np

__all__ = ["lstm_python"]

_ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}


def lstm_python(
    Xs,
    Wi,
    Wh,
    Bi=None,
    Bh=None,
    h_init=None,
    c_init=None,
    proj=None,
    p_i=None,
    p_f=None,
    p_o=None,
    f_act="sigmoid",
    g_act="tanh",
    h_act="tanh",
    reverse=False,
    weight_layout="IFGO",
):
    """The hidden and the cell states behind each input of (time, batch, channels), in the order in
    which inputs are seen; activations are names."""
    f_act, g_act, h_act = (_ACTIVATIONS[name] for name in (f_act, g_act, h_act))
    batch, hidden = Xs.shape[1], Wi.shape[0] // 4
    shown = hidden if proj is None else len(proj)
    h = np.zeros((batch, shown), Xs.dtype) if h_init is None else h_init
    c = np.zeros((batch, hidden), Xs.dtype) if c_init is None else c_init
    bias = sum((b for b in (Bi, Bh) if b is not None), np.zeros(4 * hidden, Xs.dtype))
    seen = lambda peephole, cell: 0 if peephole is None else peephole * cell
    hs, cs = [], []
    for x in Xs[::-1] if reverse else Xs:
        parts = np.split(x @ Wi.T + h @ Wh.T + bias, 4, axis=1)
        i, f, g, o = (parts[weight_layout.index(gate)] for gate in "IFGO")
        c = f_act(f + seen(p_f, c)) * c + f_act(i + seen(p_i, c)) * g_act(g)
        h = f_act(o + seen(p_o, c)) * h_act(c)
        h = h if proj is None else h @ proj.T
        hs.append(h)
        cs.append(c)
    return np.stack(hs), np.stack(cs)
