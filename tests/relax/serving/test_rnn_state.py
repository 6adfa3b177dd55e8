# SPDX-License-Identifier: Apache-2.0
"""Recurrent states: per sequence, with steps that can be taken back."""

import numpy as np
import pytest
import tvm

from .paged import builtin, shape


def _get(storage, rows, slots, out):
    out.copyfrom(storage.numpy()[rows.numpy(), slots.numpy()])


def _set(storage, rows, slots, value):
    array = storage.numpy()
    array[rows.numpy(), slots.numpy()] = value.numpy()
    storage.copyfrom(array)


def _create(history=3):
    initial = [
        tvm.runtime.tensor(np.zeros(2, "float32")),
        tvm.runtime.tensor(np.ones(1, "float32")),
    ]
    get, set_ = tvm.runtime.convert(_get), tvm.runtime.convert(_set)
    return builtin("rnn_state_create", 2, 3, history, [get, get], [set_, set_], initial)


def _step(state, ids, values, lengths=None):
    """Sets the first state of layer 1; gives what it was."""
    builtin("kv_state_begin_forward", state, shape(*ids), shape(*(lengths or [1] * len(ids))))
    out = tvm.runtime.empty((len(ids), 2), "float32")
    before = builtin("rnn_state_get", state, 1, 0, out).numpy().copy()
    value = np.array([[v, v] for v in values], "float32")
    builtin("rnn_state_set", state, 1, 0, tvm.runtime.tensor(value))
    builtin("kv_state_end_forward", state)
    return before[:, 0].tolist()


def _now(state, sequence):
    return builtin("rnn_state_debug_get", state, 1, 0, sequence).numpy()[0]


def test_states_of_sequences():
    state = _create()
    for i in (5, 7):
        builtin("kv_state_add_sequence", state, i)
    assert _step(state, [5, 7], [1, 10]) == [0, 0]
    assert _step(state, [7], [20]) == [10]
    assert _step(state, [7, 5], [30, 2]) == [20, 1]
    assert (_now(state, 5), _now(state, 7)) == (2, 30)
    builtin("kv_state_popn", state, 7, 2)
    assert _now(state, 7) == 10
    builtin("kv_state_fork_sequence", state, 7, 8)
    assert _step(state, [8], [99]) == [10] and _now(state, 7) == 10
    builtin("kv_state_popn", state, 8, 1)
    assert _now(state, 8) == 10
    builtin("kv_state_remove_sequence", state, 8)
    builtin("kv_state_add_sequence", state, 9)  # its row is used again, from the beginning
    assert _now(state, 9) == 0
    builtin("kv_state_clear", state)
    builtin("kv_state_add_sequence", state, 5)
    assert _now(state, 5) == 0


def test_history_ends():
    state = _create()
    builtin("kv_state_add_sequence", state, 0)
    for value in range(1, 6):
        _step(state, [0], [value])
    with pytest.raises(ValueError, match="expected 0 to 2 steps, the history of sequence 0, got 3"):
        builtin("kv_state_popn", state, 0, 3)
    builtin("kv_state_popn", state, 0, 2)
    assert _now(state, 0) == 3
    _step(state, [0], [9], [4])  # several at once leave no history
    with pytest.raises(ValueError, match="expected 0 to 0 steps"):
        builtin("kv_state_popn", state, 0, 1)


@pytest.mark.parametrize(
    "name, args, error, text",
    [
        ("kv_state_add_sequence", (0,), ValueError, "expected a sequence that is new, got 0"),
        ("kv_state_remove_sequence", (4,), ValueError, "expected a sequence of the state, got 4"),
        ("kv_state_fork_sequence", (0, 1, 0), ValueError, "expected position -1"),
        ("kv_state_begin_forward", (shape(0, 0), shape(1, 1)), ValueError, "different sequences"),
        ("kv_state_begin_forward", (shape(0), shape(0)), ValueError, "positive lengths"),
        ("kv_state_end_forward", (), RuntimeError, "kv_state_begin_forward before it"),
        ("rnn_state_debug_get", (2, 0, 0), IndexError, "expected a layer below 2, got 2"),
        ("rnn_state_debug_get", (0, 5, 0), IndexError, "expected a state below 2, got 5"),
    ],
)
def test_errors(name, args, error, text):
    state = _create()
    builtin("kv_state_add_sequence", state, 0)
    with pytest.raises(error, match=text):
        builtin(name, state, *args)
    assert _step(state, [0], [1]) == [0]
    builtin("kv_state_add_sequence", state, 1)
    builtin("kv_state_add_sequence", state, 2)
    with pytest.raises(ValueError, match="expected room for another sequence"):
        builtin("kv_state_add_sequence", state, 3)
