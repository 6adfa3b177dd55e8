# SPDX-License-Identifier: Apache-2.0
"""What the arguments of a function are, and a script that measures it."""

from tvm import tir
from tvm.target import Target

SKETCH = '''\
"""Measures {prim_func} of {relax_func} in {model}."""

from tvm.dlight.benchmark import benchmark_prim_func
from tvm.script import tir as T

{source}
if __name__ == "__main__":
    benchmark_prim_func(
        {name},
        args={args},
        dym_var_dict={variables},
        sample_number={sample_number},
        target={target},
        weight={weight},
        relax_func_name={relax_func!r},
        prim_func_name={prim_func!r},
    )
'''


def extract_func_info_from_prim_func(func):
    """([(shape, type)] of the function's buffers, {name: type} of their symbolic sizes)."""
    infos, variables = [], {}
    for param in func.params:
        buffer = func.buffer_map.get(param, None)
        if buffer is None:
            raise ValueError(
                f"extract_func_info_from_prim_func: expected parameters that are buffers, got "
                f"{param.name} of type {param.dtype}"
            )
        for extent in buffer.shape:
            if isinstance(extent, tir.Var):
                variables[str(extent.name)] = str(extent.dtype)
        shape = tuple(int(n) if isinstance(n, tir.IntImm) else n for n in buffer.shape)
        infos.append((shape, str(buffer.dtype)))
    return infos, variables


def extract_prim_func(
    model_name, relax_func_name, prim_func_name, func, *,
    func_args=None, dym_var_dict=None, weight=1, sample_number=5, target=None,
):  # fmt: skip
    """The text of a script that measures the function; its symbolic sizes are sampled. `func_args`:
    (shape, type) of each argument, with the names of symbolic sizes, where others than the
    function's own count."""
    if dym_var_dict is None:
        _, dym_var_dict = extract_func_info_from_prim_func(func)
    target = Target.current() if target is None else Target(target)
    name = "function"
    source = func.with_attr("global_symbol", name).script()
    return SKETCH.format(
        model=model_name,
        relax_func=relax_func_name,
        prim_func=prim_func_name,
        source="\n".join(line for line in source.splitlines() if not line.startswith("# from")),
        name=name,
        args=func_args,
        variables=dym_var_dict,
        sample_number=sample_number,
        target=None if target is None else repr(str(target)),
        weight=weight,
    )
