# SPDX-License-Identifier: Apache-2.0
"""One arena per function."""

import random

from tvm import relax
from tvm.relax.transform import PackStorages, StaticPlanBlockMemory

from .passes import check, module


def _storage(name, size):
    return (
        f'{name} = R.memory.alloc_storage(R.shape([{size}]), R.prim_value(0), R.str("global"), '
        'R.dtype("float32"))'
    )


def _tensor(name, storage, shape, offset=0):
    return (
        f"{name} = R.memory.alloc_tensor({storage}, R.prim_value({offset}), R.shape([{shape}]), "
        'R.dtype("float32"), R.prim_value(0))'
    )


def _use(*tensors):
    return f'_ = R.call_packed("f", {", ".join(tensors)}, sinfo_args=[R.Tuple])'


def program(*lines, result="x"):
    body = "\n".join("    " + line for line in lines)
    return f"""
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
{body}
    return {result}
"""


def test_offsets():
    """Tensors begin at multiples of 64; d fits where a and b were; the storage of what is returned
    and that of unknown size stay."""
    before = program(
        _storage("s", 40), _tensor("a", "s", 10), _storage("t", 100), _tensor("b", "t", 25),
        _use("a", "b"), _storage("u", 1000), _tensor("d", "u", 40), _use("d"),
        _storage("w", "n"), _tensor("e", "w", "n"), _use("e"),
        _storage("r", 64), _tensor("y", "r", 16), _use("y"), result="y",
    )  # fmt: skip
    after = program(
        _storage("arena", 192), _tensor("a", "arena", 10), _tensor("b", "arena", 25, 64),
        _use("a", "b"), _tensor("d", "arena", 40), _use("d"),
        _storage("w", "n"), _tensor("e", "w", "n"), _use("e"),
        _storage("r", 64), _tensor("y", "r", 16), _use("y"), result="y",
    )  # fmt: skip
    result = check(PackStorages(), before, after)
    assert PackStorages()(result).same_as(result)


def test_symbolic_tensor_takes_all_of_its_storage():
    before = program(
        _storage("s", 640), _tensor("a", "s", "n"), _storage("t", 64), _tensor("b", "t", 16),
        _use("a", "b"),
    )  # fmt: skip
    after = program(
        _storage("arena", 704), _tensor("a", "arena", "n"), _tensor("b", "arena", 16, 640),
        _use("a", "b"),
    )  # fmt: skip
    check(PackStorages(), before, after)


def test_large_tensors_share_their_place():
    """b does not fit where a was, but a fits where b will be."""
    before = program(
        _storage("s", 4160), _tensor("a", "s", 800), _storage("t", 64), _tensor("o", "t", 16),
        _use("a", "o"), _tensor("b", "s", 1040), _storage("u", 64), _tensor("p", "u", 16),
        _use("o", "b", "p"),
    )  # fmt: skip
    after = program(
        _storage("arena", 4288), _tensor("a", "arena", 800), _tensor("o", "arena", 16, 4160),
        _use("a", "o"), _tensor("b", "arena", 1040), _tensor("p", "arena", 16, 4224),
        _use("o", "b", "p"),
    )  # fmt: skip
    check(PackStorages(), before, after)


def _name(binding):
    return getattr(binding.value.op, "name", "")


def _random_program(seed):
    rng = random.Random(seed)
    lines, live = [], []
    for i in range(60):
        shape = rng.choice([1, 7, 16, 100, 1000])
        lines.append(
            f'a{i} = R.builtin.alloc_tensor(R.shape([{shape}]), R.dtype("float32"), '
            'R.prim_value(0), R.str("global"))'
        )
        # Something is read to fill the new tensor: a call without one may keep what it is given.
        lines.append(_use(*rng.sample(live, min(2, len(live))), f"a{i}"))
        live = [*live[-4:], f"a{i}"]
    return program(*lines)


def test_live_tensors_do_not_overlap():
    """Of every two tensors that are in use at the same time none touches the other's bytes."""
    for seed in range(20):
        planned = StaticPlanBlockMemory()(module(_random_program(seed)))
        bindings = PackStorages()(planned)["main"].body.blocks[0].bindings
        storage = [b for b in bindings if _name(b) == "relax.memory.alloc_storage"]
        assert len(storage) == 1
        spans = {}
        for i, binding in enumerate(bindings):
            if _name(binding) == "relax.memory.alloc_tensor":
                begin = int(binding.value.args[1].value)
                elements = int(binding.var.struct_info.shape.values[0])
                spans[binding.var.name_hint] = [i, i, begin, begin + elements * 4]
            elif isinstance(binding.value.op, relax.ExternFunc):
                for arg in binding.value.args:
                    spans[arg.name_hint][1] = i
        items = list(spans.values())
        for k, a in enumerate(items):
            for b in items[:k]:
                together = a[0] <= b[1] and b[0] <= a[1]
                assert not together or a[3] <= b[2] or b[3] <= a[2], seed
        arena = int(storage[0].value.args[0].values[0])
        assert max(span[3] for span in items) <= arena and arena % 64 == 0
