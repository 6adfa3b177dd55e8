# SPDX-License-Identifier: Apache-2.0
"""Samples of symbolic sizes, and the table of results."""

import random

from tvm import arith, tir

INPUT_SHAPE_TYPE = list[tuple[tuple[int, ...], str]]
_SIZES = (2, 1024)  # of a sample


def get_func_name_from_gv(gv):
    """The name of a function of a module."""
    return str(gv.name_hint)


def dym_var_sample_str(sample):
    """A sample as text: n=16, m=3."""
    return ", ".join(f"{_name(var)}={value}" for var, value in sample.items())


def _name(var):
    return var if isinstance(var, str) else str(var.name)


def _size(extent, sample):
    """An extent with its variables replaced: an int, a name or an expression."""
    if isinstance(extent, str):
        if extent not in sample:
            raise ValueError(
                f"benchmark: expected a size for {extent} in dym_var_sample, got {sorted(sample)}"
            )
        return int(sample[extent])
    if not isinstance(extent, tir.PrimExpr):
        return int(extent)
    variables = {}

    def note(node):
        if isinstance(node, tir.Var):
            variables[node] = tir.const(_size(str(node.name), sample), node.dtype)

    tir.stmt_functor.post_order_visit(extent, note)
    return int(arith.Analyzer().simplify(tir.stmt_functor.substitute(extent, variables)))


def populuate_input_shape(input_infos, dym_var_sample):
    """(shape, type) of each input, with the sample's sizes in place of the symbolic ones."""
    sample = {_name(var): value for var, value in dym_var_sample.items()}
    return [(tuple(_size(n, sample) for n in shape), str(dtype)) for shape, dtype in input_infos]


def default_dym_var_sample_func(dym_var_dict):
    """A random size for each variable."""
    return {var: random.randint(*_SIZES) for var in dym_var_dict}


def print_results(bench_results, sort_by="WxTime(ms)", desc=True):
    """Prints results, dictionaries of the same keys, as a table."""
    if not bench_results:
        return
    columns = list(bench_results[0])
    if sort_by is not None:
        if sort_by not in columns:
            raise ValueError(f"print_results: expected sort_by to be of {columns}, got '{sort_by}'")
        bench_results = sorted(bench_results, key=lambda row: row[sort_by], reverse=desc)

    def text(value):
        return f"{value:.6f}" if isinstance(value, float) else str(value)

    rows = [columns, *([text(row[c]) for c in columns] for row in bench_results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
