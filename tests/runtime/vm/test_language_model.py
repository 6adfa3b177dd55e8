# SPDX-License-Identifier: Apache-2.0
"""Sampling and the plain attention cache, against NumPy."""

import numpy as np
import pytest
import tvm_ffi


def builtin(name):
    return tvm_ffi.get_global_func("vm.builtin." + name)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def test_softmax_with_temperature():
    x = np.random.default_rng(0).standard_normal((1, 50)).astype("float32")
    expected = softmax(x / 0.7)
    builtin("apply_softmax_with_temperature")(x, 0.7)
    np.testing.assert_allclose(x, expected, rtol=1e-5)


def test_sampling_follows_the_distribution():
    logits = np.array([0.0, 2.0, 1.0, -1.0], "float32")
    prob = softmax(logits).astype("float32")
    points = (np.arange(4000) + 0.5) / 4000
    for name, values, options in [
        ("sample_top_p_from_logits", logits, (1.0, 1.0)),
        ("sample_top_p_from_prob", prob, (1.0,)),
        ("multinomial_from_uniform", prob, ()),
    ]:
        drawn = [builtin(name)(values, *options, float(u)) for u in points]
        np.testing.assert_allclose(np.bincount(drawn) / 4000, prob, atol=1e-3)


def test_top_p_keeps_the_likeliest():
    prob = np.array([[0.1, 0.5, 0.3, 0.1]], "float32")
    sample = builtin("sample_top_p_from_prob")
    assert {sample(prob, 0.6, u / 100) for u in range(100)} == {1, 2}
    assert {sample(prob, 0.0, u / 100) for u in range(100)} == {1}
    assert builtin("sample_top_p_from_logits")(np.log(prob), 0.0, 0.9, 0.99) == 1


def test_penalties():
    logits, ids = np.array([1.0, -1.0, 2.0], "float32"), np.array([0, 1], "int32")
    x = logits.copy()
    builtin("apply_repetition_penalty")(x, ids, 2.0)
    np.testing.assert_allclose(x, [0.5, -2.0, 2.0])
    x = logits.copy()
    freqs = np.array([3, 1], "int32")
    builtin("apply_presence_and_frequency_penalty")(x, ids, freqs, 0.5, 0.25)
    np.testing.assert_allclose(x, [1 - 0.75 - 0.5, -1 - 0.25 - 0.5, 2])


def test_bad_logits_and_tokens():
    with pytest.raises(ValueError, match="one contiguous row of float32"):
        builtin("sample_top_p_from_prob")(np.zeros((2, 3), "float32"), 1.0, 0.5)
    with pytest.raises(ValueError, match="one contiguous row of float32"):
        builtin("multinomial_from_uniform")(np.zeros(3), 0.5)
    x = np.ones(3, "float32")
    with pytest.raises(IndexError, match="expected tokens below 3, got 5"):
        builtin("apply_repetition_penalty")(x, np.array([0, 5], "int32"), 2.0)
    assert x.tolist() == [1, 1, 1]  # nothing was changed
    with pytest.raises(ValueError, match="a count of int32 for each token"):
        args = np.array([0], "int32"), np.array([1, 2], "int32")
        builtin("apply_presence_and_frequency_penalty")(x, *args, 1.0, 1.0)


def rows(begin, end):
    return np.arange(begin, end, dtype="float32").reshape(-1, 1) * np.ones(2, "float32")


def contents(cache, count):
    view = builtin("attention_kv_cache_view")(cache, tvm_ffi.Shape((count, 2)))
    return view.numpy()[:, 0].astype(int).tolist()


def create(init, capacity, fill):
    return builtin("attention_kv_cache_create")(init, tvm_ffi.Shape((capacity, 2)), fill)


def test_cache_grows():
    cache = create(rows(0, 2), 2, 2)
    for begin in (2, 5):
        cache = builtin("attention_kv_cache_append")(cache, rows(begin, begin + 3))
    assert contents(cache, 8) == list(range(8))
    builtin("attention_kv_cache_array_popn")([cache], 3)
    assert contents(cache, 5) == list(range(5))
    builtin("attention_kv_cache_update")(cache, rows(10, 12))
    assert contents(cache, 2) == [10, 11]
    builtin("attention_kv_cache_array_clear")([cache])
    assert contents(cache, 0) == []


@pytest.mark.parametrize("sinks", [0, 2])
@pytest.mark.parametrize("step", [1, 2, 3, 9])
def test_window_keeps_the_last_rows(sinks, step):
    size, total, cache = 5, 18, create(rows(0, 1), 1, 0)
    for begin in range(0, total, step):
        value = rows(begin, begin + step)
        if sinks:
            override = builtin("attention_kv_cache_window_override_with_sinks")
            cache = override(cache, value, size, sinks)
        else:
            cache = builtin("attention_kv_cache_window_override")(cache, value, size)
    last = total if total % step == 0 else (total // step + 1) * step
    expected = [*range(sinks), *range(last - (size - sinks), last)]
    assert sorted(contents(cache, size)) == expected


def test_bad_use_of_the_cache():
    with pytest.raises(ValueError, match="expected 0 to 4 rows, got 5"):
        create(rows(0, 5), 4, 5)
    with pytest.raises(ValueError, match="expected at most 1 rows"):
        create(rows(0, 1), 4, 2)
    cache = create(rows(0, 1), 4, 1)
    with pytest.raises(ValueError, match="attention_kv_cache_append: expected rows of"):
        builtin("attention_kv_cache_append")(cache, np.zeros((1, 3), "float32"))
    with pytest.raises(ValueError, match="attention_kv_cache_append: expected rows of"):
        builtin("attention_kv_cache_append")(cache, np.zeros((1, 2)))
    with pytest.raises(ValueError, match="attention_kv_cache_view: expected shape"):
        contents(cache, 2)
    with pytest.raises(ValueError, match="expected 0 to 1 rows, got 2"):
        builtin("attention_kv_cache_array_popn")([cache], 2)
    with pytest.raises(ValueError, match="fewer sinks than 3 rows, got 3"):
        builtin("attention_kv_cache_window_override_with_sinks")(cache, rows(0, 1), 3, 3)
    assert contents(cache, 1) == [0]
