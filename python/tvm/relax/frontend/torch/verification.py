# SPDX-License-Identifier: Apache-2.0
"""Compares an exported program with PyTorch, and names the first value that differs."""

import os

import torch
import tvm_ffi
from torch import fx
from torch.utils import _pytree as pytree

import tvm
from tvm import relax

from ..comparison import Verification, arrays, difference
from .exported_program_translator import ExportedProgramImporter, parameter_value
from .program import ValueRef, source_of, tensor_of

_from_archive = tvm_ffi.get_global_func("relax.frontend.torch.from_archive")


def _size(size, program):
    """A size, with symbols at the least of their ranges, but 2 at least."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    expr = size.node.expr
    ranges = {str(symbol): bounds for symbol, bounds in program.range_constraints.items()}
    values = {}
    for symbol in expr.free_symbols:
        bounds = ranges.get(str(symbol))
        values[symbol] = 2 if bounds is None else max(2, int(bounds.lower))
    return int(expr.subs(values))


def _random_inputs(program, shapes, seed):
    """Numbers for the user's inputs, in order."""
    generator = torch.Generator().manual_seed(seed)
    names = set(program.graph_signature.user_inputs)
    inputs = []
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in names:
            continue
        meta = node.meta["val"]
        if not isinstance(meta, torch.Tensor):
            inputs.append(_size(meta, program) if isinstance(meta, torch.SymInt) else meta)
            continue
        shape = (shapes or {}).get(node.name, [_size(s, program) for s in meta.shape])
        if meta.is_floating_point() or meta.is_complex():
            value = torch.randn(shape, generator=generator, dtype=meta.dtype)
        else:
            value = torch.randint(0, 2, shape, generator=generator).to(meta.dtype)
        inputs.append(value)
    return inputs


def _numpy(value):
    if isinstance(value, torch.Tensor):
        return tensor_of(value).numpy()
    return value


def _run(mod, inputs, target):
    main = relax.VirtualMachine(tvm.compile(mod, target=target), tvm.cpu())["main"]
    tensors = [tensor_of(v) if isinstance(v, torch.Tensor) else v for v in inputs]
    return arrays(main(*(v for v in tensors if v is not None)))


class _Recorder(fx.Interpreter):
    """Runs a graph and keeps the tensors of its nodes, in order."""

    def run_node(self, node):
        value = super().run_node(node)
        if node.op == "call_function" and isinstance(value, torch.Tensor):
            self.values[node] = value.clone()
        return value

    def record(self, *args):
        self.values = {}
        self.run(*args)
        return self.values


def _first_difference(program, inputs, tolerance, target):
    """The first value of the graph that differs, or None."""
    program = program.run_decompositions({})
    given = iter(inputs)
    user = set(program.graph_signature.user_inputs)
    values = [
        next(given) if spec.arg.name in user else parameter_value(program, spec)
        for spec in program.graph_signature.input_specs
    ]
    with torch.no_grad():
        expected = _Recorder(program.graph_module).record(*values)
    importer = ExportedProgramImporter()
    outputs = [ValueRef(node.name) for node in expected]
    mod = importer.from_exported_program(program, False, False, False, outputs=outputs)
    for node, got in zip(expected, _run(mod, inputs, target), strict=True):
        where = f"{node.target}, {source_of(node)}".rstrip(", ")
        found = difference(node.name, where, got, _numpy(expected[node]))
        if found.error > tolerance:
            return found
    return None


def verify(model, inputs=None, shape_dict=None, tolerance=1e-4, target="llvm", seed=0):
    """Runs a program (a .pt2 file, read as it would be without PyTorch, or what torch.export made)
    here and by PyTorch, and compares.

    `inputs` are the arguments, in order; without them they are random, of the program's sizes or
    those that `shape_dict` has by name. When an output differs by more than `tolerance`, all values
    of the graph are compared, and the first in the order of the nodes that differs is named.
    """
    if isinstance(model, torch.export.ExportedProgram):
        program, mod = model, None
    else:
        path = os.fspath(model)
        program, mod = torch.export.load(path), _from_archive(path, False, False, False)
    inputs = list(_random_inputs(program, shape_dict, seed) if inputs is None else inputs)
    if mod is None:
        functional = program.run_decompositions({})
        mod = ExportedProgramImporter().from_exported_program(functional, False, False, False)
    got = _run(mod, inputs, target)
    copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
    with torch.no_grad():
        args, kwargs = pytree.tree_unflatten(copies, program.call_spec.in_spec)
        results = pytree.tree_leaves(program.module()(*args, **kwargs))
    expected = [_numpy(value) for value in results if value is not None]
    names = program.graph_signature.user_outputs
    found = [difference(str(n), "", a, b) for n, a, b in zip(names, got, expected, strict=True)]
    result = Verification(tolerance, found, peer="PyTorch")
    if not result.agrees:
        result.first = _first_difference(program, inputs, tolerance, target)
    return result
