# SPDX-License-Identifier: Apache-2.0
"""The operators of `models` in PyTorch, in Relax and in ONNX."""

import numpy as np


class PythonOps:
    """Arithmetic of tensors that have Python's operators."""

    def add(self, a, b):
        return a + b

    def scale(self, x, factor):
        return x * factor

    def shift(self, x, offset):
        return x + offset


# ---- PyTorch -------------------------------------------------------------------------------------
class TorchOps(PythonOps):
    def __init__(self, parameters):
        import torch

        self.torch, self.f, self.parameters = torch, torch.nn.functional, parameters

    def weight(self, name, *_):
        return self.parameters[name.replace(".", "_")]

    def constant(self, array):
        return self.torch.from_numpy(array)

    def conv2d(self, x, weight, stride, padding, groups):
        return self.f.conv2d(x, weight, None, stride, padding, 1, groups)

    def batch_norm(self, x, gamma, beta, mean, var):
        return self.f.batch_norm(x, mean, var, gamma, beta, eps=1e-5)

    def max_pool(self, x, kernel, stride, padding):
        return self.f.max_pool2d(x, kernel, stride, padding)

    def global_average(self, x):
        return x.mean((2, 3))

    def linear(self, x, weight, bias):
        return self.f.linear(x, weight, bias)

    def layer_norm(self, x, gamma, beta, epsilon):
        return self.f.layer_norm(x, (x.shape[-1],), gamma, beta, epsilon)

    def embedding(self, ids, table):
        return self.f.embedding(ids, table)

    def relu(self, x):
        return self.f.relu(x)

    def relu6(self, x):
        return self.f.relu6(x)

    def gelu(self, x):
        return self.f.gelu(x)

    def gelu_tanh(self, x):
        return self.f.gelu(x, approximate="tanh")

    def tanh(self, x):
        return self.torch.tanh(x)

    def softmax(self, x):
        return self.torch.softmax(x, -1)

    def matmul(self, a, b):
        return a @ b

    def transpose(self, x, axes):
        return x.permute(axes)

    def reshape(self, x, shape):
        return x.reshape(shape)

    def concat(self, xs, axis):
        return self.torch.cat(xs, axis)

    def shape(self, x):
        return x.shape

    def cut(self, x, axis, begin, end):
        return x[(slice(None),) * axis + (slice(begin, end),)]


class _Recorder(TorchOps):
    """Runs the model once to learn which weights it has."""

    def __init__(self, weights):
        super().__init__({})
        self.weights, self.made = weights, {}

    def weight(self, name, *args):
        key = name.replace(".", "_")
        if key not in self.made:
            self.made[key] = self.torch.from_numpy(self.weights(name, *args))
        return self.made[key]


def torch_module(model):
    import torch

    recorder = _Recorder(model.weights)
    with torch.no_grad():
        inputs = map(torch.from_numpy, model.inputs())
        model.run(recorder, *(x.float() if x.is_floating_point() else x for x in inputs))

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for key, value in recorder.made.items():
                self.register_buffer(key, value)

        def forward(self, *inputs):
            return tuple(model.run(TorchOps(self._buffers), *inputs))

    return Module().eval().to(getattr(torch, model.dtype))


# ---- Relax ---------------------------------------------------------------------------------------
def tensor_info(shape, dtype):
    """What is known of a tensor: struct info, which newer versions of Apache TVM call a type."""
    from tvm import relax

    return (getattr(relax, "TensorStructInfo", None) or relax.TensorType)(shape, dtype)


def info_of(expr):
    return expr.struct_info if hasattr(expr, "struct_info") else expr.ty


class RelaxOps:
    """Emits into a BlockBuilder; also Apache TVM's."""

    def __init__(self, builder, weights, dtype="float32"):
        from tvm import relax

        self.relax, self.op, self.builder, self.weights = relax, relax.op, builder, weights
        self.constants, self.dtype = {}, dtype

    def emit(self, expr):
        return self.builder.emit(expr)

    def weight(self, name, *args):
        if name not in self.constants:
            self.constants[name] = self.constant(self.weights(name, *args))
        return self.constants[name]

    def constant(self, array):
        return self.relax.const(array.astype(self.dtype), self.dtype)

    def conv2d(self, x, weight, stride, padding, groups):
        return self.emit(self.op.nn.conv2d(x, weight, stride, padding, groups=groups))

    def batch_norm(self, x, gamma, beta, mean, var):
        norm = self.op.nn.batch_norm(x, gamma, beta, mean, var, axis=1, training=False)
        return self.emit(self.emit(norm)[0])

    def max_pool(self, x, kernel, stride, padding):
        return self.emit(self.op.nn.max_pool2d(x, kernel, stride, padding))

    def global_average(self, x):
        return self.emit(self.op.mean(x, (2, 3)))

    def linear(self, x, weight, bias):
        transposed = self.emit(self.op.permute_dims(weight))
        x = self.emit(self.op.matmul(x, transposed))
        return x if bias is None else self.add(x, bias)

    def layer_norm(self, x, gamma, beta, epsilon):
        return self.emit(self.op.nn.layer_norm(x, gamma, beta, axes=[-1], epsilon=epsilon))

    def embedding(self, ids, table):
        flat = self.emit(self.op.reshape(ids, (-1,)))
        taken = self.emit(self.op.take(table, flat, axis=0))
        shape = [*info_of(ids).shape, info_of(table).shape[1]]
        return self.emit(self.op.reshape(taken, shape))

    def relu(self, x):
        return self.emit(self.op.nn.relu(x))

    def relu6(self, x):
        return self.emit(self.op.clip(x, 0, 6))

    def gelu(self, x):
        return self.emit(self.op.nn.gelu(x))

    def gelu_tanh(self, x):
        return self.emit(self.op.nn.gelu_tanh(x))

    def tanh(self, x):
        return self.emit(self.op.tanh(x))

    def softmax(self, x):
        return self.emit(self.op.nn.softmax(x, -1))

    def add(self, a, b):
        return self.emit(self.op.add(a, b))

    def scale(self, x, factor):
        return self.emit(self.op.multiply(x, self.relax.const(factor, self.dtype)))

    def shift(self, x, offset):
        return self.emit(self.op.add(x, self.relax.const(offset, self.dtype)))

    def matmul(self, a, b):
        return self.emit(self.op.matmul(a, b))

    def transpose(self, x, axes):
        return self.emit(self.op.permute_dims(x, axes))

    def reshape(self, x, shape):
        return self.emit(self.op.reshape(x, shape))

    def concat(self, xs, axis):
        return self.emit(self.op.concat(list(xs), axis))

    def shape(self, x):
        return [int(dim) if hasattr(dim, "value") else dim for dim in info_of(x).shape]

    def cut(self, x, axis, begin, end):
        part = self.emit(self.op.strided_slice(x, [axis], [begin], [end]))
        if isinstance(end, int):
            return part
        # That a symbolic end lies inside is not known.
        shape = [*info_of(x).shape]
        shape[axis] = end - begin
        return self.builder.match_cast(part, tensor_info(shape, self.dtype))


def relax_module(model):
    """Dimensions of the model's signature that have a name are symbolic."""
    import tvm
    from tvm import relax

    tir = tvm.tir if hasattr(tvm, "tir") else tvm.tirx  # what newer versions call it
    builder, symbols = relax.BlockBuilder(), {}

    def extents(shape):
        for dim in shape:
            if isinstance(dim, str) and dim not in symbols:
                symbols[dim] = tir.Var(dim, "int64")
        return [symbols.get(dim, dim) for dim in shape]

    params = [
        relax.Var(name, tensor_info(extents(shape), dtype))
        for name, (dtype, shape) in model.signature.items()
    ]
    with builder.function("main", params):
        with builder.dataflow():
            results = model.run(RelaxOps(builder, model.weights, model.dtype), *params)
            outputs = [builder.emit_output(r) for r in results]
        builder.emit_func_output(relax.Tuple(outputs) if len(outputs) > 1 else outputs[0])
    return builder.get()


# ---- nn ------------------------------------------------------------------------------------------
class NnOps(PythonOps):
    """Operators of relax.frontend.nn; those that it does not have are wrapped."""

    def __init__(self, parameters):
        from tvm import relax
        from tvm.relax.frontend import nn

        self.relax, self.nn, self.op, self.parameters = relax, nn, nn.op, parameters

    def wrap(self, name, call, *tensors):
        return self.nn.wrap_nested(call(*(t._expr for t in tensors)), name)

    def weight(self, name, *_):
        return self.parameters[name]

    def constant(self, array):
        return self.nn.Tensor.from_const(array)

    def linear(self, x, weight, bias):
        x = self.op.matmul(x, self.op.permute_dims(weight))
        return x if bias is None else x + bias

    def conv2d(self, x, weight, stride, padding, groups):
        return self.op.conv2d(x, weight, None, stride, padding, groups=groups)

    def batch_norm(self, x, gamma, beta, mean, var):
        def norm(*args):
            return self.relax.op.nn.batch_norm(*args, axis=1, training=False)

        return self.wrap("batch_norm", norm, x, gamma, beta, mean, var)[0]

    def max_pool(self, x, kernel, stride, padding):
        pool = lambda x: self.relax.op.nn.max_pool2d(x, kernel, stride, padding)
        return self.wrap("max_pool2d", pool, x)

    def global_average(self, x):
        return self.wrap("mean", lambda x: self.relax.op.mean(x, (2, 3)), x)

    def relu6(self, x):
        return self.wrap("relu6", lambda x: self.relax.op.clip(x, 0, 6), x)

    def gelu_tanh(self, x):
        return self.op.gelu(x, approximate="tanh")

    def embedding(self, ids, table):
        taken = self.op.take(table, self.op.reshape(ids, (-1,)), axis=0)
        return self.op.reshape(taken, (*ids.shape, table.shape[1]))

    def layer_norm(self, x, gamma, beta, epsilon):
        return self.op.layer_norm(x, x.shape[-1], gamma, beta, epsilon)

    def relu(self, x):
        return self.op.relu(x)

    def gelu(self, x):
        return self.op.gelu(x)

    def tanh(self, x):
        return self.op.tanh(x)

    def softmax(self, x):
        return self.op.softmax(x, -1)

    def matmul(self, a, b):
        return self.op.matmul(a, b)

    def transpose(self, x, axes):
        return self.op.permute_dims(x, axes)

    def reshape(self, x, shape):
        return self.op.reshape(x, shape)

    def concat(self, xs, axis):
        return self.op.concat(list(xs), axis)

    def shape(self, x):
        return x.shape

    def cut(self, x, axis, begin, end):
        part = lambda x: self.relax.op.strided_slice(x, [axis], [begin], [end])
        return self.wrap("strided_slice", part, x)


def nn_module(model):
    """The model as a module of nn, exported, its weights bound."""
    from tvm import relax
    from tvm.relax.frontend import nn

    relax_module(model)  # makes the weights
    arrays = model.weights.arrays
    parameters = {name: nn.Parameter(array.shape) for name, array in arrays.items()}

    class Module(nn.Module):
        def __init__(self):
            for name, parameter in parameters.items():
                setattr(self, name.replace(".", "_"), parameter)

        def main(self, *inputs):
            results = tuple(model.run(NnOps(parameters), *inputs))
            return results if len(results) > 1 else results[0]

    module = Module()
    infos = [nn.spec.Tensor(shape, dtype) for dtype, shape in model.signature.values()]
    method = nn.spec.MethodSpec(module.main, list(model.signature), infos, "plain", "none")
    mod, _ = module.export_tvm(nn.spec.ModuleSpec(module, ["main"], [method]))
    weights = {name.replace(".", "_"): array for name, array in arrays.items()}
    return relax.transform.BindParams("main", weights)(mod)


# ---- ONNX ----------------------------------------------------------------------------------------
class OnnxOps:
    def __init__(self, weights, shapes):
        self.weights, self.nodes, self.constants, self.count = weights, [], {}, 0
        self.shapes = shapes  # of the inputs

    def emit(self, op, *inputs, **attributes):
        from onnx import helper

        self.count += 1
        out = f"v{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def weight(self, name, *args):
        self.constants[name] = self.weights(name, *args)
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def number(self, value):
        return self.constant(np.float32(value))

    def ints(self, values):
        return self.constant(np.asarray(values, np.int64))

    def conv2d(self, x, weight, stride, padding, groups):
        pads, kernel = [padding] * 4, list(self.constants[weight].shape[2:])
        return self.emit(
            "Conv", x, weight, strides=[stride] * 2, pads=pads, group=groups, kernel_shape=kernel
        )

    def batch_norm(self, x, gamma, beta, mean, var):
        return self.emit("BatchNormalization", x, gamma, beta, mean, var, epsilon=1e-5)

    def max_pool(self, x, kernel, stride, padding):
        return self.emit(
            "MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[padding] * 4
        )

    def global_average(self, x):
        return self.emit("Flatten", self.emit("GlobalAveragePool", x))

    def linear(self, x, weight, bias):
        transposed = f"{weight}.T"
        self.constants[transposed] = np.ascontiguousarray(self.constants[weight].T)
        x = self.emit("MatMul", x, transposed)
        return x if bias is None else self.add(x, bias)

    def layer_norm(self, x, gamma, beta, epsilon):
        return self.emit("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)

    def embedding(self, ids, table):
        return self.emit("Gather", table, ids, axis=0)

    def relu(self, x):
        return self.emit("Relu", x)

    def relu6(self, x):
        return self.emit("Clip", x, self.number(0), self.number(6))

    def gelu(self, x):
        return self.emit("Gelu", x)

    def gelu_tanh(self, x):
        return self.emit("Gelu", x, approximate="tanh")

    def tanh(self, x):
        return self.emit("Tanh", x)

    def softmax(self, x):
        return self.emit("Softmax", x, axis=-1)

    def add(self, a, b):
        return self.emit("Add", a, b)

    def scale(self, x, factor):
        return self.emit("Mul", x, self.number(factor))

    def shift(self, x, offset):
        return self.emit("Add", x, self.number(offset))

    def matmul(self, a, b):
        return self.emit("MatMul", a, b)

    def transpose(self, x, axes):
        return self.emit("Transpose", x, perm=list(axes))

    def reshape(self, x, shape):
        return self.emit("Reshape", x, self.ints(shape))

    def concat(self, xs, axis):
        return self.emit("Concat", *xs, axis=axis)

    def shape(self, x):
        return self.shapes[x]

    def cut(self, x, axis, begin, end):
        return self.emit("Slice", x, *(self.ints([i]) for i in (begin, end, axis)))


def onnx_model(model):
    from onnx import TensorProto, helper, numpy_helper

    types = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
    ops = OnnxOps(model.weights, {name: shape for name, (_, shape) in model.signature.items()})
    outputs = model.run(ops, *model.signature)
    used = {name for node in ops.nodes for name in node.input}
    graph = helper.make_graph(
        ops.nodes,
        model.name,
        [
            helper.make_tensor_value_info(name, types[dtype], shape)
            for name, (dtype, shape) in model.signature.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(a, name) for name, a in ops.constants.items() if name in used],
    )
    opset = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
