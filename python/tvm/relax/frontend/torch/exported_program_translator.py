# SPDX-License-Identifier: Apache-2.0
"""Exported programs (torch.export) as graphs."""

import os
import warnings

import torch
import tvm_ffi
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from .base_fx_graph_translator import BaseFXGraphImporter
from .program import (
    Program,
    ProgramInput,
    ValueRef,
    attributes_of,
    dtype_name,
    is_supported,
    meta_of,
    nodes_of,
    ranges_of,
    refuse_layout,
    target_name,
    tensor_of,
)

_import = tvm_ffi.get_global_func("relax.frontend.torch._import")
_inspect = tvm_ffi.get_global_func("relax.frontend.torch._inspect")

_KINDS = {
    InputKind.USER_INPUT: "user",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "constant",
    InputKind.CONSTANT_TENSOR: "constant",
}

_MUTATIONS = (
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
)


def parameter_value(ep, spec):
    """The tensor behind a parameter, buffer or lifted constant."""
    if spec.kind is InputKind.PARAMETER or (spec.kind is InputKind.BUFFER and spec.persistent):
        return ep.state_dict[spec.target]
    return ep.constants[spec.target]


def _inputs(ep):
    metas = {node.name: node.meta.get("val") for node in ep.graph.nodes if node.op == "placeholder"}
    inputs = []
    for spec in ep.graph_signature.input_specs:
        if spec.kind is InputKind.TOKEN:
            continue
        kind = _KINDS.get(spec.kind)
        if kind is None:
            raise ValueError(f"Unsupported input kind {spec.kind.name} of '{spec.arg.name}'")
        name, meta, value = spec.arg.name, meta_of(metas.get(spec.arg.name)), None
        if isinstance(spec.arg, ConstantArgument):
            meta, value = None, spec.arg.value
        elif kind != "user":
            try:
                value = tensor_of(parameter_value(ep, spec))
            except ValueError as error:
                raise ValueError(f"{spec.kind.name.lower()} '{spec.target}': {error}") from None
        inputs.append(ProgramInput(name, kind, meta, value))
    return inputs + attributes_of(ep.graph, ep.graph_module)


def _outputs(ep):
    """The results of the program, and the new values of what it changes, by input."""
    names = {spec.target: spec.arg.name for spec in ep.graph_signature.input_specs if spec.target}
    outputs, mutations = [], {}
    for spec in ep.graph_signature.output_specs:
        if spec.kind is OutputKind.TOKEN:
            continue
        is_constant = isinstance(spec.arg, ConstantArgument)
        value = spec.arg.value if is_constant else ValueRef(spec.arg.name)
        if spec.kind in _MUTATIONS:
            mutations[names.get(spec.target, spec.target)] = value
        else:
            outputs.append(value)
    return outputs, mutations


def _changes_in_place(graph):
    """Whether operators change tensors in ways that the importer does not follow: those that say so
    by their name (add_) it does."""
    targets = {n.target for n in graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
    return any(t._schema.is_mutable and not t._opname.endswith("_") for t in targets)


def _decomposed(exported_program, custom):
    """The program in PyTorch's core operators. Its decompositions do not serve all programs with
    symbolic sizes; such a program is converted as it was exported. They also forget where in its
    memory an input begins."""
    for node in exported_program.graph.nodes:
        if node.op == "call_function" and node.target.__name__ not in custom:
            refuse_layout(node)
    try:
        return exported_program.run_decompositions()
    except (ValueError, RuntimeError) as error:
        line = str(error).strip().splitlines()[0]
        warnings.warn(
            f"from_exported_program: PyTorch cannot decompose this program ({line}); "
            "its operators are converted as they were exported",
            stacklevel=3,
        )
        table = torch.export.default_decompositions()
        for op in [op for op in table if is_supported(str(op))]:
            table.pop(op)
        return exported_program.run_decompositions(table)


def _with_converters(exported_program, custom):
    """The program whose operators without a converter are decomposed, and no others."""
    targets = [n.target for n in exported_program.graph.nodes if n.op == "call_function"]
    missing = [t for t in targets if not _has_converter(t) and t.__name__ not in custom]
    if not missing:
        return exported_program
    table = torch.export.default_decompositions()
    for op in [op for op in table if is_supported(target_name(op))]:
        table.pop(op)
    return exported_program.run_decompositions(table)


def _has_converter(target):
    # What autocast surrounds has types that only PyTorch's own passes write down.
    name = target_name(target)
    return is_supported(name) and name != "higher_order.wrap_with_autocast"


def _read(exported_program, convert=lambda node: None, outputs=None):
    """The program as the importer takes it; `outputs`, when given, replace its own."""
    own_outputs, mutations = _outputs(exported_program)
    return Program(
        _inputs(exported_program),
        nodes_of(exported_program.graph, convert),
        own_outputs if outputs is None else outputs,
        ranges_of(exported_program.range_constraints),
        dtype_name(torch.get_default_dtype()),
        mutations,
    )


def inspect(program):
    """Inputs, outputs, ranges of dimensions, weights and operators of an exported program, or of a
    .pt2 file by its path, as text, with what is not supported."""
    if not isinstance(program, torch.export.ExportedProgram):
        return str(_inspect(os.fspath(program)))
    return str(_inspect(_read(program)))


class ExportedProgramImporter(BaseFXGraphImporter):
    """Imports one exported program."""

    def from_exported_program(
        self,
        exported_program,
        keep_params_as_input,
        unwrap_unit_return_tuple,
        no_bind_return_tuple,
        custom_convert_map=None,
        outputs=None,
    ):
        """The module; `outputs`, when given, are returned in the place of the program's own."""
        self.update_convert_map(custom_convert_map or {})
        _import(
            self._handle,
            _read(exported_program, self._custom, outputs),
            keep_params_as_input,
            unwrap_unit_return_tuple,
            no_bind_return_tuple,
            False,
            "main",
        )
        return self._imported()


def from_exported_program(
    exported_program,
    *,
    keep_params_as_input=False,
    unwrap_unit_return_tuple=False,
    no_bind_return_tuple=False,
    custom_convert_map=None,
    run_ep_decomposition=True,
):
    """The module of a program that torch.export made. Its function `main` takes the user's inputs,
    and with `keep_params_as_input` the parameters behind them (tvm.relax.frontend.detach_params
    has their values); otherwise they are constants. It returns a tuple of the program's results.
    Inputs that the program changes are written to; buffers that it changes are kept by the virtual
    machine from call to call.

    `custom_convert_map={"rms_norm.default": f}` converts nodes by f(node, importer), which uses
    importer.env, .block_builder, .shape_of and .retrieve_args. Without `run_ep_decomposition` the
    operators of the program are converted as they are, not in terms of PyTorch's core operators.
    """
    if not isinstance(exported_program, torch.export.ExportedProgram):
        raise TypeError(
            "from_exported_program: expected a torch.export.ExportedProgram, "
            f"got {type(exported_program).__name__}"
        )

    def imported(program):
        return ExportedProgramImporter().from_exported_program(
            program,
            keep_params_as_input,
            unwrap_unit_return_tuple,
            no_bind_return_tuple,
            custom_convert_map,
        )

    if run_ep_decomposition:
        return imported(_decomposed(exported_program, custom_convert_map or {}))
    exported_program = _with_converters(exported_program, custom_convert_map or {})
    if _changes_in_place(exported_program.graph):
        return imported(exported_program.run_decompositions({}))
    try:
        return imported(exported_program)
    except NotImplementedError as error:
        if "a change in place seen through" not in str(error):
            raise
    return imported(exported_program.run_decompositions({}))
