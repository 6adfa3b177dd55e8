# SPDX-License-Identifier: Apache-2.0
"""Live PyTorch graphs as the programs that the importer takes."""

import operator

import sympy
import torch
import tvm_ffi
from torch import fx

from tvm import relax
from tvm._derive import node_class

_MODULE = "relax.frontend.torch"
_is_supported = tvm_ffi.get_global_func(f"{_MODULE}.is_supported")


def _node(name):
    return node_class(f"{_MODULE}.{name}", f"tvm.{_MODULE}")


ValueRef, TensorMeta, ScalarMeta = _node("ValueRef"), _node("TensorMeta"), _node("ScalarMeta")
GraphNode, ProgramInput, Program = _node("GraphNode"), _node("ProgramInput"), _node("Program")
Complex = _node("Complex")

_SCALARS = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}


def dtype_name(dtype):
    """The dtype as the compiler names it."""
    return str(dtype).removeprefix("torch.")


def size_of(size):
    """An integer, or the text of a symbolic one."""
    if isinstance(size, torch.SymInt):
        expr = size.node.expr
        return int(expr) if expr.is_number else sympy.srepr(expr)
    return int(size)


def meta_of(value):
    """What is known of a value: of tensors sizes and type, of symbolic scalars the expression."""
    if isinstance(value, torch.Tensor):
        return TensorMeta([size_of(s) for s in value.shape], dtype_name(value.dtype))
    kind = _SCALARS.get(type(value))
    if kind is not None:
        return ScalarMeta(sympy.srepr(value.node.expr), kind)
    if isinstance(value, (list, tuple)):
        return [meta_of(item) for item in value]
    return None


def tensor_of(tensor):
    """The tensor in the processor's memory, without a copy where it lies there in row-major
    order."""
    if tensor.device.type == "meta" or isinstance(tensor, torch._subclasses.FakeTensor):
        raise ValueError(f"expected a tensor with elements, got one of device {tensor.device}")
    tensor = tensor.detach().cpu()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tvm_ffi.from_dlpack(tensor.contiguous())


def target_name(target):
    """The name by which converters are found: of an operator its overload, of a function its
    module and name."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    module = getattr(target, "__module__", None) or ""
    if target is getattr(operator, getattr(target, "__name__", ""), None):
        module = "_operator"
    return f"{module}.{getattr(target, '__name__', target)}"


def is_supported(target, of_complex=False):
    """Whether an operator has a converter, by its name; of complex tensors, where asked for."""
    return _is_supported(target, of_complex)


def submodule_of(node):
    """The graph that a node stands for: the branch or body of control flow."""
    if node.op != "get_attr":
        return None
    value = operator.attrgetter(node.target)(node.graph.owning_module)
    return value if isinstance(value, fx.GraphModule) else None


def program_of(graph_module):
    """A graph of operators whose inputs are its placeholders."""
    graph, inputs, outputs = graph_module.graph, [], None
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs.append(ProgramInput(node.name, "user", meta_of(node.meta.get("val"))))
        elif node.op == "output":
            outputs = value_of(node.args[0])
    inputs += attributes_of(graph, graph_module)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    ranges = ranges_of(_symbol_ranges(graph))
    return Program(inputs, nodes_of(graph), outputs, ranges, dtype_name(torch.get_default_dtype()))


def _symbol_ranges(graph):
    """What the tracer knows of the symbols in a graph."""
    for node in graph.nodes:
        value = node.meta.get("val")
        sizes = value.shape if isinstance(value, torch.Tensor) else [value]
        for size in sizes:
            if isinstance(size, torch.SymInt):
                return size.node.shape_env.var_to_range
    return {}


def value_of(arg):
    """An argument of a node as the importer takes it."""
    if isinstance(arg, fx.Node):
        body = submodule_of(arg)
        return ValueRef(arg.name) if body is None else program_of(body)
    if isinstance(arg, (list, tuple, torch.Size)):
        return [value_of(item) for item in arg]
    if isinstance(arg, dict):  # of results, in order
        return [value_of(item) for item in arg.values()]
    if isinstance(arg, torch.dtype):
        return dtype_name(arg)
    if isinstance(arg, (torch.device, torch.layout, torch.memory_format)):
        return str(arg)
    if isinstance(arg, torch.SymInt):
        return ScalarMeta(sympy.srepr(arg.node.expr), "int")
    if isinstance(arg, torch.Tensor):
        return tensor_of(arg)
    if arg is None or isinstance(arg, (bool, int, float, str)):
        return arg
    if isinstance(arg, complex):
        parts = [torch.tensor(part) for part in (arg.real, arg.imag)]
        return Complex(*(relax.const(tensor_of(part)) for part in parts))
    if isinstance(arg, slice):
        return [value_of(arg.start), value_of(arg.stop), value_of(arg.step)]
    raise TypeError(
        f"expected numbers, texts, dtypes, devices, tensors and lists as arguments of nodes, "
        f"got {type(arg).__name__}: {arg}"
    )


def source_of(node):
    """The line of the user's program that a node comes from."""
    trace = node.meta.get("stack_trace") or ""
    frames = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    if not frames:
        return ""
    lines = trace.splitlines()
    at = max(i for i, line in enumerate(lines) if line.strip() == frames[-1])
    code = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return f"{frames[-1]}: {code}" if code else frames[-1]


def is_check(node):
    """Whether a node is a check or a message, which gives no value but its place in an order."""
    is_effect = target_name(node.target) == "higher_order.with_effects"
    return is_effect and not node.args[1]._schema.returns


def _is_token(node):
    """Whether a node stands for the order of effects alone."""
    if target_name(node.target) == "_operator.getitem":
        return _is_token(node.args[0])
    return node.op == "call_function" and is_check(node)


def depends_on_layout(node):
    """Whether a node reads the memory of a tensor by places (as_strided) that does not lie in
    row-major order from the beginning of its memory, as all of ours do."""
    if not target_name(node.target).startswith("aten.as_strided"):
        return False
    value = node.args[0].meta.get("val")
    return value is not None and not (value.is_contiguous() and value.storage_offset() == 0)


def refuse_layout(node):
    """Raises for a node that depends on a layout that ours is not."""
    if depends_on_layout(node):
        value = node.args[0].meta["val"]
        raise NotImplementedError(
            f"{target_name(node.target)} (node {node.name}): expected a tensor in row-major order, "
            f"got one of strides {tuple(value.stride())} from {value.storage_offset()} on\n"
            f"  imported from {source_of(node)}"
        )


def nodes_of(graph, convert=lambda node: None):
    """The calls of a graph of operators; convert(node) may give a function that takes a converter's
    place."""
    nodes = []
    for node in graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        if node.op != "call_function":
            raise ValueError(f"Unsupported op {node.op} of node {node.name}")
        if _is_token(node):
            continue
        own = convert(node)
        if own is None:
            refuse_layout(node)
        nodes.append(
            GraphNode(
                node.name,
                target_name(node.target),
                [] if own else value_of(node.args),
                {} if own else {key: value_of(value) for key, value in node.kwargs.items()},
                meta_of(node.meta.get("val")),
                source_of(node),
                own,
            )
        )
    return nodes


def attributes_of(graph, owner):
    """Tensors that the graph reads from its module, as inputs."""
    inputs = []
    for node in graph.nodes:
        if node.op == "get_attr":
            value = operator.attrgetter(node.target)(owner)
            if not isinstance(value, torch.Tensor):
                continue
            inputs.append(ProgramInput(node.name, "constant", meta_of(value), tensor_of(value)))
    return inputs


def ranges_of(range_constraints):
    """{symbol: (lower, upper)}; None where a bound is not finite."""
    ranges = {}
    for symbol, bounds in range_constraints.items():
        lower, upper = (
            int(bound) if bound.is_integer and abs(bound) < 2**62 else None
            for bound in (sympy.sympify(bounds.lower), sympy.sympify(bounds.upper))
        )
        ranges[str(symbol)] = (lower, upper)
    return ranges
