# SPDX-License-Identifier: Apache-2.0
"""Models through torch.compile: a backend, and the graphs that it would compile."""

import functools
import os
import tempfile
import warnings

import torch
import tvm_ffi
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import tvm
from tvm import _libs, relax

from .base_fx_graph_translator import BaseFXGraphImporter
from .fx_translator import TorchFXImporter
from .program import (
    depends_on_layout,
    dtype_name,
    is_check,
    is_supported,
    program_of,
    submodule_of,
    target_name,
)

_import = tvm_ffi.get_global_func("relax.frontend.torch._import")
_find_cached = tvm_ffi.get_global_func("runtime._find_cached")
_store_cached = tvm_ffi.get_global_func("runtime._store_cached")
_seed = tvm_ffi.get_global_func("relax.run.random.seed")

# What imported programs take as the identity, because they are for inference.
_DROPOUT = [torch.ops.aten.native_dropout.default, torch.ops.aten.bernoulli.p]
_DETERMINANTS = [torch.ops.aten._linalg_det.default, torch.ops.aten._linalg_slogdet.default]


def device_from_inputs(example_inputs):
    """The device of the first tensor among the inputs, or None."""
    for value in example_inputs:
        if isinstance(value, torch.Tensor):
            return value.device
    return None


@functools.lru_cache(None)
def llvm_target():
    """The target for this machine's processor."""
    return tvm.target.Target("llvm")


def _place(device):
    """(device, target) for a device of PyTorch."""
    if device is not None and device.type == "cuda":
        dev = tvm.cuda(device.index or 0)
        return dev, tvm.target.Target.from_device(dev)
    return tvm.cpu(), llvm_target()


def _runs_here(node):
    if node.op == "get_attr":  # the body of control flow belongs to its node
        return submodule_of(node) is None or all(map(_runs_here, node.users))
    if node.op != "call_function":
        return False
    if node.target in _DROPOUT or depends_on_layout(node):
        return False
    return is_supported(target_name(node.target), _takes_complex(node))


def _takes_complex(node):
    return any(map(_is_complex, node.all_input_nodes))


def _missing_name(node):
    of = " of complex tensors" if _takes_complex(node) else ""
    return target_name(node.target) + of


def _is_random(node):
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags


class _Support(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return _runs_here(node)


def import_graph_module(graph_module):
    """The module of a graph of operators: `main` takes its placeholders and returns its result, or
    a tuple of several."""
    importer = BaseFXGraphImporter()
    flags = (False, True, False, False)  # one result is not wrapped
    _import(importer._handle, program_of(graph_module), *flags, "main")
    return importer._imported()


class _Compiled(torch.nn.Module):
    """A compiled graph in the place of the PyTorch module it was made from. Complex tensors are
    pairs of numbers there, and dimensions are in the order of memory."""

    def __init__(self, main, graph, orders, views, guarded):
        super().__init__()
        self._main, self._views = main, views
        self._random = any(_is_random(node) for node in graph.nodes)
        (output,) = (n.args[0] for n in graph.nodes if n.op == "output")
        self._single = isinstance(output, fx.Node)
        outputs = [output] if self._single else list(output)
        self._has_one = len(outputs) == 1
        # Where torch.compile has guards for what it was called with, the others need no look.
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self._orders = {i: orders[n] for i, n in enumerate(placeholders) if n in orders}
        values = [None if n in orders else n.meta.get("val") for n in placeholders]
        # Results are PyTorch's tensors where an argument is.
        self._has_tensors = any(isinstance(n.meta.get("val"), torch.Tensor) for n in placeholders)
        plain = [guarded and _is_plain(v) and not _may_be_token(v) for v in values]
        self._checked = [i for i, is_plain in enumerate(plain) if not is_plain]
        self._copied = [i for i, value in enumerate(outputs) if _may_share(value, outputs)]
        finish = {
            i: (orders.get(n), _is_complex(n), _strides_of_ones(n, i in self._copied))
            for i, n in enumerate(outputs)
        }
        self._finish = {i: how for i, how in finish.items() if any(how)}

    def forward(self, *args):
        return self._run(list(args))

    def boxed(self, args):
        """The same for a list of arguments, which is emptied: none is kept alive here."""
        given = list(args)
        args.clear()
        return self._run(given)

    boxed._boxed_call = True

    def _run(self, args):
        if self._random:  # torch.manual_seed decides what comes
            _seed(int(torch.randint(2**62, ())))
        given = args
        if self._checked:
            given = list(args)
            for i in self._checked:
                given[i] = _plain(args[i], self._orders.get(i))
        # Tensors of PyTorch cross without copies, and results come back as such.
        results = self._main(*given)
        results = [results] if self._has_one else list(results)
        if not self._has_tensors:
            results = [torch.from_dlpack(r) if hasattr(r, "__dlpack__") else r for r in results]
        for i, how in self._finish.items():
            results[i] = _finished(results[i], *how)
        if self._copied:
            self._copy_shared(args, results)
        if self._views:
            make, sources = self._views
            return make(*(args[i] if is_input else results[i] for is_input, i in sources))
        return results[0] if self._single else results

    def _copy_shared(self, args, results):
        """What is a copy in PyTorch's graph does not lie in the memory of an input, which may be
        changed afterwards, or of another result."""
        memory = {value.data_ptr() for value in args if isinstance(value, torch.Tensor)}
        for i, value in enumerate(results):
            if i not in self._copied and isinstance(value, torch.Tensor):
                memory.add(value.data_ptr())
        for i in self._copied:
            if results[i].data_ptr() in memory:
                results[i] = results[i].clone()
            memory.add(results[i].data_ptr())


def _is_complex(node):
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.is_complex()


def _may_share(node, outputs):
    """Whether a result may have the memory of an input or of another result: its elements come from
    there, one for one. An input that is returned as it is stays what it is."""
    if not isinstance(node, fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    while node.op == "call_function" and len(node.all_input_nodes) == 1:
        (node,) = node.all_input_nodes
        if node.op == "placeholder" or node in outputs:
            return True
    return False


def _is_plain(value):
    """Whether kernels take a value as it is: a number, or a tensor in row-major order."""
    if not isinstance(value, torch.Tensor):
        return value is not None
    return value.is_contiguous() and not value.is_complex() and not value.is_neg()


def _may_be_token(value):
    """Whether a value may stand for the place in an order of effects, which comes as None."""
    sizes = value.shape if isinstance(value, torch.Tensor) else ()
    return len(sizes) == 1 and isinstance(sizes[0], int) and sizes[0] == 0


def _plain(tensor, order):
    if tensor is None:  # the place in an order of effects, which has the type of a tensor
        return torch.empty(0)
    if order is None and _is_plain(tensor):
        return tensor
    tensor = tensor.detach()
    if order is not None:
        tensor = tensor.permute(order)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg().contiguous()


def _finished(value, order, is_complex, strides):
    if is_complex:
        value = torch.view_as_complex(value)
    if strides is not None:
        value = value.as_strided(value.shape, strides)
    return value if order is None else value.permute(_inverse(order))


def _strides_of_ones(node, may_be_input):
    """The strides of a result of known sizes, some of which are 1: what their strides are does not
    follow from the order of memory. None where they are those of row-major order."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or not all(type(n) is int for n in value.shape):
        return None
    if 1 not in value.shape or 0 in value.shape or not value.is_contiguous():
        return None
    row_major = torch.empty(value.shape, device="meta").stride()
    return value.stride() if may_be_input or value.stride() != row_major else None


def _inverse(order):
    return [order.index(i) for i in range(len(order))]


def _memory_order(value):
    """The dimensions of a tensor in the order of memory, or None: they are in that order, or the
    tensor has gaps or elements that share memory."""
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return None
    hint = [s.node.hint if isinstance(s, torch.SymInt) else s for s in value.shape]
    strides = [s.node.hint if isinstance(s, torch.SymInt) else s for s in value.stride()]
    if None in hint or None in strides or 0 in hint:
        return None
    order = sorted(range(len(hint)), key=lambda i: -strides[i])
    expected = 1
    for i in reversed(order):
        if hint[i] != 1 and strides[i] != expected:
            return None
        expected *= hint[i]
    moved = [i for i in order if hint[i] != 1]
    return None if moved == sorted(moved) else order


def _is_view(node):
    """Whether a node is a view of its first argument."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    if schema is None or schema.is_mutable or len(schema.returns) != 1:
        return False
    return schema.returns[0].alias_info is not None and isinstance(node.args[0], fx.Node)


def _base(node):
    while _is_view(node):
        node = node.args[0]
    return node


def _is_symbolic(value):
    numbers = (*value.shape, *value.stride(), value.storage_offset())
    return any(isinstance(number, torch.SymInt) for number in numbers)


def _shared_views(graph_module):
    """Results that are views of one tensor stay such: the graph returns that tensor. So do views of
    an input whose place in memory is symbolic: PyTorch makes its own of the place of ours. Gives a
    function that makes the results, and what it takes: (is an input, number) of the inputs and the
    graph's results. None where there are no such views."""
    graph = graph_module.graph
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    (output,) = (n for n in graph.nodes if n.op == "output")
    outputs = output.args[0] if isinstance(output.args[0], (list, tuple)) else []
    nodes = {n for n in outputs if isinstance(n, fx.Node) and n.op == "call_function"}
    bases = [_base(n) for n in nodes]

    def is_shared(node):
        base = _base(node)
        if base.op == "placeholder":
            return base is not node and _is_symbolic(node.meta["val"])
        return base.op == "call_function" and bases.count(base) > 1

    shared = set(filter(is_shared, nodes))
    if not shared:
        return None
    views, copies, taken, sources = fx.Graph(), {}, [], []

    def take(node):
        if node not in copies:
            is_input = node.op == "placeholder"
            sources.append((is_input, inputs.index(node) if is_input else len(taken)))
            if not is_input:
                taken.append(node)
            copies[node] = views.placeholder(node.name)
        return copies[node]

    def copy(node):
        if node not in copies and _is_view(node):
            first = copy(node.args[0])
            copies[node] = views.node_copy(node, lambda n: first if n is node.args[0] else take(n))
        return take(node)

    results = [
        copy(n) if n in shared else take(n) if isinstance(n, fx.Node) else n for n in outputs
    ]
    views.output(results)
    output.args = (taken,)
    graph.eliminate_dead_code()
    return fx.GraphModule(torch.nn.Module(), views).forward, sources


def _in_memory_order(graph_module):
    """Placeholders and results whose dimensions lie in memory in another order (of images with
    channels last, of transposed tensors) get that order: {node: dimensions} of those."""
    graph, permute, orders = graph_module.graph, torch.ops.aten.permute.default, {}

    def permuted(node, value, order):
        moved = graph.call_function(permute, (node, order))
        moved.meta["val"] = value.permute(order)
        return moved

    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op == "placeholder" and (order := _memory_order(value)) is not None:
            users = [user for user in node.users if user.op != "output"]
            node.meta = node.meta | {"val": value.permute(order)}  # others share the old one
            with graph.inserting_after(node):
                original = permuted(node, node.meta["val"], _inverse(order))
            for user in users:
                user.replace_input_with(node, original)
            orders[node] = order
        if node.op == "output":
            outputs = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
            moved = {}
            for item in {n for n in outputs if isinstance(n, fx.Node) and n.op == "call_function"}:
                value = item.meta.get("val")
                if (order := _memory_order(value)) is not None:
                    with graph.inserting_before(node):
                        moved[item] = permuted(item, value, order)
                    orders[moved[item]] = order
            results = [moved.get(item, item) for item in outputs]
            node.args = (results if isinstance(node.args[0], (list, tuple)) else results[0],)
    return orders


@functools.lru_cache(None)
def _build_of_the_compiler():
    """What changes whenever the compiler does."""
    files = [os.stat(path) for path in map(_libs.find, _libs.NAMES) if path]
    return ";".join(f"{file.st_size} {file.st_mtime_ns}" for file in files)


def _machine(mod, target, device, pipeline):
    """The virtual machine of a module. Those for processors are found by tvm.compile; those for
    devices are read from the disk here, unless a pass of the user's has a part in them."""

    def compiled():
        if pipeline is None:
            return tvm.compile(mod, target)
        with target:
            change = relax.get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
            return tvm.compile(change(mod), target)

    is_known = pipeline is None or isinstance(pipeline, str)
    if device == tvm.cpu() or not is_known or tvm.runtime.cache_dir() is None:
        return relax.VirtualMachine(compiled(), device)
    parts = [_build_of_the_compiler(), str(target), pipeline or "", tvm.ir.save_json(mod)]
    key = "torch.compile\n" + "\n".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.so")
        found = _find_cached(key)
        if found is None:
            compiled().export_library(path)
            with open(path, "rb") as file:
                _store_cached(key, file.read())
        else:
            with open(path, "wb") as file:
                file.write(found)
        return relax.VirtualMachine(tvm.runtime.load_module(path), device)


def _compile(graph_module, pipeline, guarded=True):
    """Compiles a graph whose operators all have converters."""
    views = _shared_views(graph_module)
    orders = _in_memory_order(graph_module)
    placeholders = [n.meta["val"] for n in graph_module.graph.nodes if n.op == "placeholder"]
    device, target = _place(device_from_inputs(placeholders))
    with unset_fake_temporarily():  # constants of the graph are real
        machine = _machine(import_graph_module(graph_module), target, device, pipeline)
    return _Compiled(machine["main"], graph_module.graph, orders, views, guarded)


def _without_checks(graph_module):
    """Takes the checks that give no value out of a graph: that of the factors of a singular matrix,
    which has infinities and NaN here."""
    graph = graph_module.graph
    for node in [n for n in graph.nodes if n.op == "call_function" and is_check(n)]:
        for token in list(node.users):
            token.replace_all_uses_with(node.args[0])
            graph.erase_node(token)
        graph.erase_node(node)


def _with_factors_as_saved(graph_module):
    """PyTorch's determinants save the factors of the transposed matrix, where that lies in memory
    row by row; so do ours of the transposed matrix, whose determinant is the same."""
    graph, transpose = graph_module.graph, torch.ops.aten.transpose.int
    for node in graph.nodes:
        if node.target not in _DETERMINANTS or not node.args[0].meta["val"].is_contiguous():
            continue
        with graph.inserting_before(node):
            transposed = graph.call_function(transpose, (node.args[0], -2, -1))
        transposed.meta["val"] = node.args[0].meta["val"].mT
        node.args = (transposed,)


def _with_constant_lengths(graph_module):
    """Recurrent layers are unrolled: a symbolic length becomes a constant, which torch.compile
    guards, so that it compiles again for another one."""
    for node in graph_module.graph.nodes:
        if node.target is torch.ops.aten.mkldnn_rnn_layer.default:
            int(node.args[0].meta["val"].shape[0])


def _compile_parts(graph_module, example_inputs, pipeline):
    """Compiles the parts of a graph whose operators have converters; PyTorch runs the others."""
    _with_constant_lengths(graph_module)
    _without_checks(graph_module)
    _with_factors_as_saved(graph_module)
    calls = [n for n in graph_module.graph.nodes if n.op == "call_function"]
    missing = sorted({_missing_name(n) for n in calls if not _runs_here(n)})
    missing = [name for name in missing if not name.startswith("_operator.getitem")]
    if not missing:
        return _compile(graph_module, pipeline) if calls else graph_module
    warnings.warn(
        f"torch.compile: PyTorch runs {', '.join(missing)} (no converter)",
        stacklevel=2,
    )
    partitioner = CapabilityBasedPartitioner(
        graph_module, _Support(), allows_single_node_partition=True
    )
    parts = partitioner.partition_and_fuse()
    for name, part in list(parts.named_children()):
        if name.startswith("fused_"):
            setattr(parts, name, _compile(part, pipeline, guarded=False))
    return parts


def _decompositions():
    """PyTorch's own, of the operators that have no converter, and of dropout in training."""
    table = torch._decomp.decomposition_table | torch._decomp.core_aten_decompositions()
    own = {op: f for op, f in table.items() if not is_supported(str(op))}
    dropout = {op: table[op] for op in _DROPOUT if op in table}
    return own | dropout | {torch.ops.aten.bernoulli.p: _bernoulli}


def _bernoulli(x, p, *, generator=None):
    return (torch.rand_like(x, dtype=torch.get_default_dtype()) < p).to(x.dtype)


def autograd_compilers(pipeline=None):
    """What PyTorch's functions for ahead-of-time autograd take: compilers of forward and backward
    graphs, and the decompositions that they expect."""
    from torch._functorch.aot_autograd import make_boxed_func

    def compiler(graph_module, example_inputs):
        compiled = _compile_parts(graph_module, example_inputs, pipeline)
        return (
            compiled.boxed if isinstance(compiled, _Compiled) else make_boxed_func(compiled.forward)
        )

    return {
        "fw_compiler": compiler,
        "bw_compiler": compiler,
        "decompositions": _decompositions(),
    }


def relax_dynamo(pipeline=None):
    """A backend for torch.compile(model, backend=relax_dynamo()), for training as well. `pipeline`
    is a pass that the graph goes through first, or the name of one that tvm.relax.get_pipeline
    knows."""
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(**autograd_compilers(pipeline))


def tvm_relax(graph_module, example_inputs, *, options=None):
    """torch.compile(model, backend="tvm_relax", options={"pipeline": …})"""
    options = dict(options or {})
    pipeline = options.pop("pipeline", None)
    if options:
        raise ValueError(f"tvm_relax: expected the option 'pipeline', got {sorted(options)}")
    return relax_dynamo(pipeline)(graph_module, example_inputs)


def _static_inputs(graph_module, example_inputs):
    return [
        (tuple(int(s) for s in value.shape), dtype_name(value.dtype))
        for value in example_inputs
        if isinstance(value, torch.Tensor)
    ]


def dynamo_capture_subgraphs(model, *params, **kwargs):
    """A module with the graphs subgraph_0, subgraph_1, … that torch.compile makes of one call of
    the model with these arguments. With keep_params_as_input the parameters stay inputs."""
    keep_params_as_input = kwargs.pop("keep_params_as_input", False)
    result = tvm.IRModule({})
    captured = 0

    def capture(graph_module, example_inputs):
        nonlocal captured
        name = f"subgraph_{captured}"
        captured += 1
        mod = TorchFXImporter().from_fx(
            graph_module,
            _static_inputs(graph_module, example_inputs),
            keep_params_as_input,
            True,
            False,
            name=name,
        )
        result.update(mod)
        return graph_module.forward

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=capture)
    with torch.no_grad():
        compiled(*params, **kwargs)
    return result
