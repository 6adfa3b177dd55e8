# SPDX-License-Identifier: Apache-2.0
"""The table of converters against PyTorch's own schemas."""

import pytest
import tvm_ffi

torch = pytest.importorskip("torch")
from tvm.relax.frontend.torch import supported_operators  # noqa: E402
from tvm.relax.frontend.torch.program import is_supported  # noqa: E402

_schema = tvm_ffi.get_global_func("relax.frontend.torch._schema")
# Where a tensor is made says nothing about its elements.
IGNORED = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator",
           "requires_grad", "copy"}  # fmt: skip


def overload(name):
    namespace, op, kind = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), op), kind)


ATEN = [str(name) for name in supported_operators() if str(name).startswith("aten.")]


@pytest.mark.parametrize("name", ATEN)
def test_parameters_are_those_of_pytorch(name):
    names, defaults = _schema(name)
    theirs = [a for a in overload(name)._schema.arguments if a.name not in IGNORED]
    ours = [str(n) for n in names if str(n) not in IGNORED]
    # One converter may serve overloads with fewer parameters, or other names.
    for argument in theirs[: len(ours)]:
        if not argument.kwarg_only:
            continue
        assert argument.name in ours, f"{argument.name} is given by name"
    positional = [a.name for a in theirs if not a.kwarg_only]
    assert len(positional) <= len(names), positional
    required = [a.name for a in theirs if not a.has_default_value()]
    assert len(names) - len(defaults) <= len(required)


def _gives_values(op):
    """Results that are given as arguments are not exported."""
    return not any(a.is_out for a in op._schema.arguments)


def test_every_core_operator_has_a_converter():
    missing = []
    for name in torch.ops.aten:
        packet = getattr(torch.ops.aten, name)
        for op in (getattr(packet, kind) for kind in packet.overloads()):
            if torch.Tag.core in op.tags and _gives_values(op) and not is_supported(str(op)):
                missing.append(str(op))
    assert not missing
