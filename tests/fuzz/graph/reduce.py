# SPDX-License-Identifier: Apache-2.0
"""Smaller graphs that still fail."""

from dataclasses import replace

import tvm
from tvm import relax


def _rebuilt(main, blocks, body):
    seq = relax.SeqExpr(blocks, body)
    return relax.Function(main.params, seq, body.struct_info, main.is_pure, main.attrs)


def _smaller(module):
    """Modules with less in them: `main` returns one of its values, or lacks a binding whose value
    a zero can stand for."""
    main = module["main"]
    blocks = list(main.body.blocks)
    for b in reversed(range(len(blocks))):
        for binding in reversed(blocks[b].bindings):
            if not isinstance(binding.var, relax.DataflowVar):
                if not binding.var.same_as(main.body.body):
                    yield _rebuilt(main, blocks[: b + 1], binding.var)
    for b, block in enumerate(blocks):
        for i, binding in enumerate(block.bindings):
            info = binding.var.struct_info
            is_zero = isinstance(binding.value, relax.Call) and "zeros" in str(binding.value.op)
            if is_zero or isinstance(binding, relax.MatchCast):
                continue
            if isinstance(info, relax.TensorStructInfo) and isinstance(info.shape, relax.ShapeExpr):
                zero = relax.op.zeros(info.shape, str(info.dtype))
                changed = list(block.bindings)
                changed[i] = relax.VarBinding(binding.var, zero)
                kind = type(block)
                yield _rebuilt(main, [*blocks[:b], kind(changed), *blocks[b + 1 :]], main.body.body)


def reduced(program, fails):
    """The smallest program found for which `fails(program)` still holds."""
    tidy = tvm.transform.Sequential(
        [relax.transform.Normalize(), relax.transform.DeadCodeElimination()]
    )
    progress = True
    while progress:
        progress = False
        for main in _smaller(program.module):
            module = program.module.clone()
            module["main"] = main
            try:
                candidate = replace(program, module=tidy(module))
                is_smaller = len(candidate.module.script()) < len(program.module.script())
                if is_smaller and relax.analysis.well_formed(candidate.module) and fails(candidate):
                    program, progress = candidate, True
                    break
            except Exception:
                continue
    return program
