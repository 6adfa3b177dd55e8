# SPDX-License-Identifier: Apache-2.0
"""Programs written in the interface we share with Apache TVM.

This file runs in our process for us and in a worker for Apache TVM, so both compile the same text.
"""

import functools
import os
import time


def sigmoid_func(columns):
    from tvm import te

    a = te.placeholder((1024, columns), name="A")
    b = te.compute(a.shape, lambda *i: 1 / (1 + te.exp(-a(*i))), name="B")
    return te.create_prim_func([a, b])


def host_target():
    """This machine. We detect it; Apache TVM has to be told the CPU, or it uses no AVX."""
    import tvm

    target = tvm.target.Target("llvm")
    if "mcpu" in target.attrs:
        return target
    return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})


def clock():
    """Wall time, or what --cpu-time chose for this process and its workers."""
    cpu_time = os.environ.get("BENCH_CLOCK") == "cpu"
    return time.process_time if cpu_time else time.perf_counter


class Timed:
    """Something that can be called and timed in this process."""

    def __init__(self, call, output=None):
        self.call, self.output = call, output

    def time(self, number):
        call, now = self.call, clock()
        begin = now()
        for _ in range(number):
            call()
        return now() - begin


def in_turns(calls, number):
    """Seconds of each, called one after the other in one process."""
    taken, now = [0.0] * len(calls), clock()
    for _ in range(number):
        for i, call in enumerate(calls):
            begin = now()
            call()
            taken[i] += now() - begin
    return taken


def resident_bytes(key="VmRSS"):
    """What the process has in memory; VmHWM: what it had at most."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def peak_bytes(call):
    """The most that the process has in memory while something is called."""
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    call()
    return resident_bytes("VmHWM")


class TimedModel(Timed):
    """A whole model: how long it took to compile, and the memory that running it takes."""

    def __init__(self, subject, name, seed, batch):
        import gc

        import layers
        from models import DIMS, MODELS, Model

        definition = None if name in MODELS else layers.find(name)
        model = Model(name, seed, DIMS | {"n": batch}, definition=definition)
        before = resident_bytes()
        self.compile_seconds, call = subject.prepare_model(model)
        super().__init__(call)
        model.weights.arrays.clear()
        gc.collect()
        if definition or os.environ.get("BENCH_MEMORY") == "0":  # a layer, or a call takes long
            self.memory = None
        elif hasattr(call, "memory"):  # a compiler is not there when what it made is run
            self.memory = call.memory()
        else:
            self.memory = peak_bytes(call) - before

    def results(self):
        import numpy as np

        return [np.asarray(x if hasattr(x, "__array__") else x.numpy()) for x in self.call()]


def export_memory(bytes_of_weights):
    """Bytes that writing a library takes beyond what is there, the weights among it."""
    import tempfile

    import numpy as np
    import tvm
    from model_ops import tensor_info
    from tvm import relax

    table = np.ones((bytes_of_weights // 4096, 1024), np.float32)
    ids = relax.Var("ids", tensor_info((1,), "int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [ids]):
        with builder.dataflow():
            row = builder.emit_output(relax.op.take(relax.const(table), ids, 0))
        builder.emit_func_output(row)
    executable = tvm.compile(builder.get(), target=host_target())
    del table, builder, row
    with tempfile.TemporaryDirectory() as folder:
        before = resident_bytes()
        return peak_bytes(lambda: executable.export_library(f"{folder}/model.so")) - before


def threads():
    """For everyone: as many as the CPUs that the runner left."""
    return len(os.sched_getaffinity(0))


def compile_seconds(columns):
    """From expression to callable; new columns are a new program, so no memory of it helps."""
    import tvm

    now = clock()
    begin = now()
    module = tvm.compile(sigmoid_func(columns), target=host_target())
    module["main"]
    return now() - begin


@functools.cache
def _chain(mode, count):
    """A machine, and its input: main is a chain of calls that nobody fuses."""
    import tvm
    from model_ops import tensor_info
    from tvm import relax, te

    x = te.placeholder((1,), name="x")
    add = te.create_prim_func([x, te.compute((1,), lambda i: x[i] + 1.0, name="y")])
    bb = relax.BlockBuilder()
    add = add.with_attr("op_pattern", 8).with_attr("global_symbol", "add_one")  # 8: opaque
    var = bb.add_func(add, "add_one")
    info = tensor_info((1,), "float32")
    value = relax.Var("x", info)
    with bb.function("main", [value]):
        with bb.dataflow():
            for _ in range(count):
                value = bb.emit(relax.call_tir(var, relax.Tuple([value]), info))
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    executable = relax.build(bb.get(), host_target(), exec_mode=mode)
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    tensor = tvm.runtime.empty((1,), "float32")
    return functools.partial(main, tensor)


def machine_seconds(mode, count):
    """Of one step of a chain of `count` kernels."""
    call, now = _chain(mode, count), clock()
    number = max(10, 20000 // count)
    begin = now()
    for _ in range(number):
        call()
    return (now() - begin) / number / count


class Pool:
    """A pool with two processes, each of which has answered once."""

    def __init__(self):
        import importlib

        try:
            module = importlib.import_module("tvm.support.popen_pool")
        except ImportError:  # its home before
            module = importlib.import_module("tvm.contrib.popen_pool")
        self.make_worker = module.PopenWorker
        self.executor = module.PopenPoolExecutor(max_workers=2)
        self.first = self.ready_seconds()
        self.task_seconds(100)

    def ready_seconds(self):
        """From asking for a process to its first answer."""
        worker, begin = self.make_worker(), time.perf_counter()
        worker.send(int)
        worker.recv()
        seconds = time.perf_counter() - begin
        worker.kill()
        return seconds

    def task_seconds(self, count):
        """Of one among many that do nothing."""
        begin = time.perf_counter()
        futures = [self.executor.submit(int) for _ in range(count)]
        for future in futures:
            future.result()
        return (time.perf_counter() - begin) / count


@functools.cache
def pool():
    return Pool()


def lower_functions(count):
    """Elementwise functions, products of matrices, reductions with a use, reshapes."""
    from tvm import te

    def elementwise(n):
        a = te.placeholder((n, 64), name="A")
        return a, te.compute((n, 64), lambda i, j: te.exp(a[i, j]) + 1.0, name="B")

    def product(n):
        a, w = te.placeholder((n, 32), name="A"), te.placeholder((32, 48), name="W")
        k = te.reduce_axis((0, 32), name="k")
        return a, w, te.compute((n, 48), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="C")

    def normalized(n):
        a, k = te.placeholder((n, 64), name="A"), te.reduce_axis((0, 64), name="k")
        m = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="M")
        return a, te.compute((n, 64), lambda i, j: a[i, j] - m[i], name="B")

    def reshaped(n):
        a = te.placeholder((n, 4, 4), name="A")
        return a, te.compute((n, 16), lambda i, j: a[i, j // 4, j % 4] * 2.0, name="B")

    kinds = (elementwise, product, normalized, reshaped)
    for i in range(count):
        func = te.create_prim_func(list(kinds[i % 4](16 + i // 4)))
        yield f"f{i}", func.with_attr("global_symbol", f"f{i}")


@functools.cache
def _lowering(count, scheduled=True):
    """The module, bound to this machine, and the default pipeline; ours schedules unless told."""
    import tvm

    target = host_target()
    target = tvm.target.Target(target, host=target)
    mod = tvm.IRModule(dict(lower_functions(count)))
    if hasattr(tvm, "s_tir") and hasattr(tvm.s_tir, "pipeline"):  # newer Apache TVM
        pipeline = tvm.s_tir.pipeline.default_s_tir_pipeline()[0]
        return tvm.tirx.transform.BindTarget(target)(mod), pipeline
    ours = "tir.default_schedule" in tvm.transform.PassContext.list_configs()
    with tvm.transform.PassContext(config={"tir.default_schedule": scheduled} if ours else {}):
        pipeline = tvm.tir.get_default_tir_pipeline(target)
    return tvm.tir.transform.BindTarget(target)(mod), pipeline


def lower_seconds(count, scheduled=True):
    """The default pipeline of passes on a module of `count` functions."""
    mod, pipeline = _lowering(count, scheduled)
    now = clock()
    begin = now()
    pipeline(mod)
    return now() - begin
