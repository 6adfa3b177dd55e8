# SPDX-License-Identifier: Apache-2.0
"""Times of functions."""

import numpy as np

import tvm
from tvm import tir
from tvm.target import Target

from .extract import extract_func_info_from_prim_func
from .utils import (
    default_dym_var_sample_func,
    dym_var_sample_str,
    populuate_input_shape,
    print_results,
)


def _function(mod_or_func, name, what):
    """The function to be measured: the one of that name, or the only one."""
    if isinstance(mod_or_func, tir.PrimFunc):
        return mod_or_func
    functions = {
        str(var.name_hint): func
        for var, func in mod_or_func.functions.items()
        if isinstance(func, tir.PrimFunc)
    }
    if name is None and len(functions) == 1:
        return next(iter(functions.values()))
    if name not in functions:
        raise ValueError(
            f"{what}: expected the name of a function, one of {sorted(functions)}, got {name}"
        )
    return functions[name]


def _data(shape, dtype, rng, device):
    is_float = dtype.startswith(("float", "bfloat"))
    values = rng.uniform(-1, 1, shape).astype("float32") if is_float else rng.integers(0, 2, shape)
    return tvm.runtime.tensor(values.astype(dtype), device)


def benchmark(
    mod_or_func, *, dym_var_sample, args=None, target=None, func_name=None, evaluator_config=None,
    rpc_config=None,
):  # fmt: skip
    """Runs a function on random data of the sample's sizes. Returns ([(shape, type)] of what it ran
    on, the median and the standard deviation of its time in milliseconds)."""
    from tvm.meta_schedule.runner import EvaluatorConfig
    from tvm.meta_schedule.runner.utils import run_evaluator_common

    if rpc_config is not None:
        raise NotImplementedError(
            "benchmark: expected no rpc_config: functions run on this machine"
        )
    func = _function(mod_or_func, func_name, "benchmark")
    target = Target.current() if target is None else Target(target)
    infos = extract_func_info_from_prim_func(func)[0] if args is None else args
    shapes = populuate_input_shape(infos, dym_var_sample)
    rng = np.random.default_rng(0)
    target = tvm.target.default_host() if target is None else target
    device = tvm.device(target)
    inputs = [_data(shape, dtype, rng, device) for shape, dtype in shapes]
    config = EvaluatorConfig() if evaluator_config is None else evaluator_config
    kernel = tvm.compile(func.with_attr("global_symbol", "main"), target)
    times = np.array(run_evaluator_common(kernel.mod, device, config, [inputs])) * 1e3
    return shapes, float(np.median(times)), float(np.std(times))


def benchmark_prim_func(
    mod_or_func, *, dym_var_sample_func=default_dym_var_sample_func, args=None, dym_var_dict=None,
    sample_number=5, target=None, weight=1, relax_func_name=None, prim_func_name=None,
    evaluator_config=None, rpc_config=None, sort_by=None, desc=True,
):  # fmt: skip
    """Measures a function for several samples of its symbolic sizes, one where it has none; prints
    a table and returns its rows. `weight`: how often the function runs in a model."""
    func = _function(mod_or_func, prim_func_name, "benchmark_prim_func")
    infos, variables = extract_func_info_from_prim_func(func)
    variables = variables if dym_var_dict is None else dym_var_dict
    rows = []
    for _ in range(sample_number if variables else 1):
        sample = dym_var_sample_func(variables)
        shapes, median, std = benchmark(
            func, dym_var_sample=sample, args=infos if args is None else args, target=target,
            evaluator_config=evaluator_config, rpc_config=rpc_config,
        )  # fmt: skip
        row = {"InputInfo": ", ".join(f"{dtype}{list(shape)}" for shape, dtype in shapes)}
        if variables:
            row["Sample"] = dym_var_sample_str(sample)
        row |= {"Time(ms)": median, "Std(ms)": std}
        if weight is not None:
            row |= {"Weight": weight, "WxTime(ms)": median * weight}
        names = {"PrimFunc": prim_func_name, "RelaxFunc": relax_func_name}
        rows.append({key: name for key, name in names.items() if name is not None} | row)
    print_results(rows, sort_by, desc)
    return rows
