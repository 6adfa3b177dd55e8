# SPDX-License-Identifier: Apache-2.0
"""A decoder over the paged cache gives what its twin in PyTorch gives, in any order of requests."""

import numpy as np
import pytest
import tvm

from bench.decoder import Config, Session, builtin, torch_decoder

torch = pytest.importorskip("torch")
CONFIG = Config(layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, inner=96, words=50,
                max_total=512, chunk=128)  # fmt: skip


def check(found, expected):
    expected = expected.numpy()
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_as_torch_with_sizes_that_are_known():
    theirs = torch_decoder(CONFIG)
    ours = Session(CONFIG, theirs.state_dict(), length=19, batch=2)
    rng = np.random.default_rng(0)
    tokens, new = (rng.integers(0, CONFIG.words, (2, n)) for n in (19, 1))
    for i in range(2):
        ours.add(i)
        logits, _ = theirs(torch.from_numpy(tokens[i : i + 1]))
        check(ours.step([i], tokens[i : i + 1]).numpy(), logits)
    _, dense = theirs(torch.from_numpy(tokens))
    check(ours.step([0, 1], new).numpy(), theirs(torch.from_numpy(new), dense)[0])


def test_as_torch():
    theirs = torch_decoder(CONFIG)
    ours = Session(CONFIG, theirs.state_dict())
    rng = np.random.default_rng(0)
    dense, tokens = {}, {}

    for i, length in enumerate((40, 7, 19)):
        ours.add(i)
        tokens[i] = rng.integers(0, CONFIG.words, (1, length))
        logits, dense[i] = theirs(torch.from_numpy(tokens[i]))
        check(ours.step([i], tokens[i]).numpy(), logits)
    for sequences in ([0, 2], [1], [2, 1, 0], [0]):
        new = rng.integers(0, CONFIG.words, (len(sequences), 1))
        found = ours.step(sequences, new).numpy()
        for row, i in enumerate(sequences):
            logits, dense[i] = theirs(torch.from_numpy(new[row : row + 1]), dense[i])
            check(found[row : row + 1], logits)
    # A fork goes on as its parent would have.
    builtin("kv_state_fork_sequence", ours.cache, 0, 9)
    new = rng.integers(0, CONFIG.words, (1, 1))
    logits, _ = theirs(torch.from_numpy(new), dense[0])
    check(ours.step([9], new).numpy(), logits)
    check(ours.step([0], new).numpy(), logits)


def test_a_token_allocates_nothing():
    """After the first one: memory of the device, and what the virtual machine holds."""
    ours = Session(CONFIG, torch_decoder(CONFIG).state_dict())
    ours.add(0)
    ours.step([0], np.arange(20)[None])
    token = tvm.runtime.tensor(np.array([[3]]))
    memory = tvm.get_global_func("runtime.DeviceMemory")
    ours.step([0], token)
    before = memory(tvm.cpu())["allocations"]
    for _ in range(30):
        ours.step([0], token)
    assert memory(tvm.cpu())["allocations"] == before
