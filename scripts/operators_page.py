# SPDX-License-Identifier: Apache-2.0
"""Writes docs/relax_operators.md from the registry: python scripts/operators_page.py"""

import inspect
import pathlib

import tvm
from tvm import relax

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "relax_operators.md"

INTRODUCTION = """\
# Operators of the graph

<!-- Made by scripts/operators_page.py from the registry. -->
Each operator is one definition in C++ ([src/relax/op](../src/relax/op/README.md)). Its function in
`tvm.relax.op` makes a call of it; `R.` names in TVMScript are the same functions.
```python
import tvm
from tvm import relax
from tvm.relax import op

n = tvm.tir.Var("n", "int64")
x = relax.Var("x", relax.TensorStructInfo((n, 3, 32, 32), "float32"))
w = relax.Var("w", relax.TensorStructInfo((16, 3, 3, 3), "float32"))

bb = relax.BlockBuilder()
y = bb.normalize(op.nn.conv2d(x, w, padding=1, strides=2))
tvm.ir.assert_structural_equal(
    y.struct_info, relax.TensorStructInfo((n, 16, 16, 16), "float32")
)
```
Numbers, tuples and lists stand for scalars, shapes and tuples of expressions. Dims may be
constants, expressions over variables, or unknown; so may be rank and dtype. What cannot be is
refused:
```python
try:
    bb.normalize(op.matmul(x, w))
except ValueError as error:  # also a tvm.TVMError
    assert "matmul: expected the last dimension of" in str(error)
```

## Adding one
In Python, with the signature as a schema and a function that infers what a call gives:
```python
def infer(call, builder):
    return call.args[0].struct_info

op.define("my.scale", "x: Tensor, factor=2.0", infer, "x times a factor.")
call = bb.normalize(op.my.scale(x, factor=0.5))
assert call.attrs["factor"] == 0.5
assert call.struct_info.dtype == "float32"
```
Lowering and gradient are attributes of the operator, `FLegalize(builder, call)` and
`FPrimalGradient`:
```python
def legalize(builder, call):
    factor = relax.const(float(call.attrs["factor"]), call.struct_info.dtype)
    return op.multiply(call.args[0], factor)

tvm.ir.Op.get("my.scale").set_attr("FLegalize", legalize)
```
In C++ it is one registration, whose parts [operator.h](../include/tvm/relax/operator.h) explains;
[infer.h](../include/tvm/relax/infer.h) has what inference needs:
```cpp
StructInfo InferScale(Infer& in) { return in.Of(0); }
TVM_REGISTER() {
  Operator("my.scale", "x: Tensor, factor=2.0", &InferScale, "x times a factor.")
      .Pattern(kElemWise);
}
```

## All of them
"pattern" says how results depend on operands (for fusion), "precision" whether an operator is worth
computing in half precision.
"""
_PATTERNS = {
    0: "elementwise",
    1: "broadcast",
    2: "injective",
    3: "reduction",
    4: "epilogue fuses",
    8: "opaque",
}
_POLICIES = ("always", "follow", "never")


def _function(name):
    value = relax.op
    for word in name.replace("dist.", "distributed.").split("."):
        value = getattr(value, word)
    return value


def _default(value):
    if isinstance(value, (tuple, list)) or type(value).__name__ == "Array":
        items = ", ".join(map(_default, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    return repr(str(value)) if isinstance(value, str) else repr(value)


def _signature(name, function):
    parts = []
    for param in inspect.signature(function).parameters.values():
        text = ("*" if param.kind is param.VAR_POSITIONAL else "") + param.name
        if param.default is not param.empty:
            text += f"={_default(param.default)}"
        parts.append(text)
    return f"{name.replace('dist.', 'distributed.')}({', '.join(parts)})"


def page():
    """The whole page."""
    groups = {}
    for name in map(str, tvm.ir.Op.list_op_names()):
        if name.startswith("relax."):
            short = name[len("relax.") :]
            groups.setdefault(short.rpartition(".")[0], []).append(short)
    text = INTRODUCTION
    for group, names in sorted(groups.items()):
        text += f"\n### {f'`relax.op.{group}`' if group else '`relax.op`'}\n"
        text += "| operator | | pattern | precision |\n| --- | --- | --- | --- |\n"
        for name in names:
            operator = tvm.ir.Op.get(f"relax.{name}")
            pattern = _PATTERNS[operator.get_attr("TOpPattern")]
            policy = _POLICIES[operator.get_attr("TMixedPrecisionPolicy")]
            doc = str(operator.description).replace("|", "\\|")
            if not operator.get_attr("FPurity"):
                doc += " Has side effects."
            signature = _signature(name, _function(name))
            text += f"| `{signature}` | {doc} | {pattern} | {policy} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
