# SPDX-License-Identifier: Apache-2.0
"""Models written in nn: exporting and running them, a decoder over the paged cache beside its twin
in PyTorch, what operations of the cache take, and steps of training.

python -m bench.serving [nn decoder attention cache training] [--threads 2]
"""

import functools

import numpy as np

from . import measure, part
from .measure import Row
from .programs import Timed

CONTEXT = 1024


def _beside(case, ours, other, name, options):
    """Two rows of one case, measured by turns."""
    timed = {"tvm": Timed(ours), name: Timed(other)}
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    return [Row(case, who, samples[who]) for who in timed]


def _alone(case, call, options):
    samples = measure.time_alternating({"tvm": Timed(call)}, options.rounds, options.seconds)
    return [Row(case, "tvm", samples["tvm"])]


# ---- nn ------------------------------------------------------------------------------------------
def nn(name, options):
    """A decoder of 32 layers is exported; models of nn beside the same graphs by BlockBuilder."""
    import tvm
    from tvm import relax

    from .decoder import Config, Decoder, spec
    from .model_ops import nn_module, relax_module
    from .models import Model

    export = lambda: Decoder(Config(layers=32)).export_tvm(spec())
    rows = _alone(f"{name}, export of 32 layers", export, options)
    for model in ("mlp", "bert_base"):
        calls, results = [], []
        for make in (nn_module, relax_module):
            main = relax.VirtualMachine(tvm.compile(make(Model(model)), "llvm"), tvm.cpu())["main"]
            inputs = [tvm.runtime.tensor(x) for x in Model(model).inputs()]
            calls.append(lambda main=main, inputs=inputs: main(*inputs))
            found = calls[-1]()
            results.append([x.numpy() for x in ([found] if hasattr(found, "numpy") else found)])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())
        rows += _beside(f"{name}, {model}", *calls, "tvm, by BlockBuilder", options)
    return rows


# ---- the decoder ---------------------------------------------------------------------------------
class _Pair:
    """The decoder and its twin, with sequences of CONTEXT tokens in both."""

    def __init__(self, options, **config):
        from .decoder import Config, Session, torch_decoder

        self.config = Config(**config)
        self.theirs = torch_decoder(self.config)
        self.ours = Session(self.config, self.theirs.state_dict())
        self.rng = np.random.default_rng(options.seed)

    def tokens(self, batch, length):
        return self.rng.integers(0, self.config.words, (batch, length))

    def fill(self, batch):
        """Sequences of ours, and PyTorch's cache of the same."""
        import torch

        context = self.tokens(batch, CONTEXT)
        for i in range(batch):
            self.ours.add(i)
            self.ours.step([i], context[i : i + 1])
        return list(range(batch)), self.theirs(torch.from_numpy(context))[1]


def _remove(cache, sequences):
    from .decoder import builtin

    for i in sequences:
        builtin("kv_state_remove_sequence", cache, i)


def decoder(name, options):
    """Prefill of 512 tokens, and one more token of 1 and of 16 sequences; memory taken by then."""
    import torch
    import tvm

    from .decoder import builtin

    pair, rows = _Pair(options), []
    ours, theirs = pair.ours, pair.theirs
    ids = pair.tokens(1, 512)

    def prefill():
        ours.add(0)
        ours.step([0], ids)
        _remove(ours.cache, [0])

    torch_ids = torch.from_numpy(ids)
    rows += _beside(f"{name}, prefill 512", prefill, lambda: theirs(torch_ids), "torch", options)
    count = lambda: tvm.get_global_func("runtime.DeviceMemory")(tvm.cpu())["allocations"]
    for batch in (1, 16):
        sequences, dense = pair.fill(batch)
        token = pair.tokens(batch, 1)
        torch_token = torch.from_numpy(token)
        given = tvm.runtime.tensor(token)

        def decode(sequences=sequences, given=given):
            ours.step(sequences, given)
            for i in sequences:
                builtin("kv_state_popn", ours.cache, i, 1)

        decode()
        before = count()
        for _ in range(20):
            decode()
        print(f"note: {name}, batch {batch}: {(count() - before) / 20} allocations a token")
        case = f"{name}, one token of {batch}, context {CONTEXT}"
        call = lambda dense=dense, token=torch_token: theirs(token, dense)
        rows += _beside(case, decode, call, "torch", options)
        _remove(ours.cache, sequences)
    return rows


def attention(name, options):
    """One layer's attention of a token over the paged cache beside PyTorch's over a dense one."""
    pair, rows = _Pair(options, layers=1), []
    for batch in (1, 16):
        sequences, dense = pair.fill(batch)
        rows += _attention_beside(f"{name}, one token of {batch}, context {CONTEXT}", pair,
                                  sequences, dense[0], options)  # fmt: skip
        _remove(pair.ours.cache, sequences)
    return rows


def _attention_beside(case, pair, sequences, dense, options):
    import torch
    import tvm

    from .decoder import builtin

    config, cache, batch = pair.config, pair.ours.cache, len(sequences)
    heads, d = config.heads, config.head_dim
    qkv = pair.rng.standard_normal((batch, 1, heads + 2 * config.kv_heads, d)).astype("float32")
    query = torch.from_numpy(qkv[:, :, :heads]).transpose(1, 2)
    given, out = tvm.runtime.tensor(qkv), tvm.runtime.empty((batch, 1, heads, d), "float32")
    ids, ones = (tvm.runtime.ShapeTuple(list(s)) for s in (sequences, [1] * batch))
    attend = tvm.get_global_func("vm.builtin.attention_kv_cache_attention_with_fused_qkv")
    function = torch.nn.functional.scaled_dot_product_attention
    builtin("kv_state_begin_forward", cache, ids, ones)
    with torch.no_grad():
        rows = _beside(
            case, lambda: attend(cache, 0, d**-0.5, given, out),
            lambda: function(query, *dense, enable_gqa=True), "torch, dense", options,
        )  # fmt: skip
    builtin("kv_state_end_forward", cache)
    return rows


def cache(name, options):
    """Tokens appended to, and popped from, a sequence of 1,000; forks of it."""
    import tvm

    pair = _Pair(options)
    ours = pair.ours
    ours.add(0)
    ours.step([0], pair.tokens(1, 1000))
    one, zero = tvm.runtime.ShapeTuple([1]), tvm.runtime.ShapeTuple([0])
    names = ("begin_forward", "end_forward", "popn", "fork_sequence", "remove_sequence")
    begin, end, pop, fork, remove = (
        tvm.get_global_func(f"vm.builtin.kv_state_{name}") for name in names
    )

    def append_and_pop():
        begin(ours.cache, zero, one)
        end(ours.cache)
        pop(ours.cache, 0, 1)

    def fork_and_remove():
        fork(ours.cache, 0, 1)
        remove(ours.cache, 1)

    return _alone(f"{name}, append and pop", append_and_pop, options) + _alone(
        f"{name}, fork and remove", fork_and_remove, options
    )


# ---- training ------------------------------------------------------------------------------------
def training(name, options):
    """A step of a perceptron and of a small convolutional net, batches of 64."""
    from .training import MODELS, steps

    rows = []
    for model in MODELS:
        ours, theirs = steps(model)
        losses = ours(), theirs()
        if abs(losses[0] - losses[1]) > 1e-3:
            raise AssertionError(f"{model}: expected one loss, got {losses}")
        rows += _beside(f"{name}, {model}", ours, theirs, "torch", options)
    return rows


def _with_threads(case):
    """A case of `bench`: PyTorch is in this process and has as many threads."""

    @functools.wraps(case)
    def run(name, subjects, options):
        import torch
        import tvm

        torch.set_num_threads(options.threads)
        tvm.get_global_func("runtime.config_threadpool")(1, options.threads)
        return case(name, options)

    return run


CASES = {f.__name__: _with_threads(f) for f in (nn, decoder, attention, cache, training)}


if __name__ == "__main__":
    cases = {name: functools.partial(case, name, []) for name, case in CASES.items()}
    part.main("python -m bench.serving", __doc__, cases)
