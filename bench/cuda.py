# SPDX-License-Identifier: Apache-2.0
"""Kernels and models on an NVIDIA GPU beside PyTorch: eager (cuBLAS, cuDNN), and Inductor.

    python -m bench.cuda                 all rows
    python -m bench.cuda sigmoid bert    those whose names contain a word

Medians of runs on random data, the subjects taking turns; times by CUDA's events, compile times
once, where the caches of neither are filled. A ratio above 1: ours is faster than the best peer.
"""

import dataclasses
import statistics
import sys
import time

ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


@dataclasses.dataclass
class Row:
    args: list
    outputs: list  # ours are written here
    func: object  # a PrimFunc
    peer: object  # the same in PyTorch
    amount: float  # of what a run does, in 10^12
    unit: str  # … in a second


def _elementwise(torch, f, peer, n=8192):
    from tvm import te

    x = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    A = te.placeholder((n, n), "bfloat16", name="A")
    func = te.create_prim_func([A, f(A)])
    return Row([x], [torch.empty_like(x)], func, peer, 4e-12 * n * n, "TB/s")


@row
def sigmoid_bf16(torch):
    from tvm import topi

    return _elementwise(torch, topi.sigmoid, torch.sigmoid)


@row
def gelu_bf16(torch):
    from tvm import te, tir

    def gelu(A):
        def one(i, j):
            x = A[i, j].astype("float32")
            return (x * 0.5 * (1 + tir.erf(x * 0.7071067811865476))).astype("bfloat16")

        return te.compute(A.shape, one, name="B")

    return _elementwise(torch, gelu, torch.nn.functional.gelu)


@row
def softmax_bf16(torch):
    from tvm import topi

    return _elementwise(torch, lambda A: topi.nn.softmax(A, 1), lambda x: torch.softmax(x, 1))


def _product(torch, m, n, k, dtype):
    from tvm import te

    t = getattr(torch, dtype)
    a, b = (torch.randn(s, device="cuda").to(t) for s in ((m, k), (k, n)))
    A, B = (te.placeholder(tuple(x.shape), dtype, name=name) for x, name in ((a, "A"), (b, "B")))
    r = te.reduce_axis((0, k), name="r")

    def element(i, j):
        return te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r)

    C = te.compute((m, n), element, name="C")
    if dtype != "float32":
        C = te.compute((m, n), lambda i, j, wide=C: wide[i, j].astype(dtype), name="D")
    out = torch.empty((m, n), device="cuda", dtype=t)
    func = te.create_prim_func([A, B, C])
    return Row([a, b], [out], func, torch.matmul, 2e-12 * m * n * k, "TFLOP/s")


@row
def product_bf16_4096(torch):
    return _product(torch, 4096, 4096, 4096, "bfloat16")


@row
def product_f32_4096(torch):
    return _product(torch, 4096, 4096, 4096, "float32")


@row
def product_f16_128x768x3072(torch):
    return _product(torch, 128, 768, 3072, "float16")


@row
def vector_bf16_14336x4096(torch):
    return _product(torch, 1, 14336, 4096, "bfloat16")


def _milliseconds(torch, run, count=30):
    times = []
    for _ in range(count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        times.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in times)


def _race(torch, subjects, rounds=3):
    for run in subjects.values():
        for _ in range(5):
            run()
    torch.cuda.synchronize()
    found = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, run in subjects.items():
            found[name].append(_milliseconds(torch, run))
    return {name: statistics.median(times) for name, times in found.items()}


def _error(torch, ours, theirs):
    gap = (ours.double() - theirs.double()).norm()
    return (gap / theirs.double().norm()).item()


def run_row(torch, name):
    import tvm

    case = ROWS[name](torch)
    mod = tvm.compile(case.func, "cuda")
    mod(*case.args, *case.outputs)
    error = _error(torch, case.outputs[0], case.peer(*case.args))
    fused = torch.compile(case.peer)
    times = _race(
        torch,
        {
            "ours": lambda: mod(*case.args, *case.outputs),
            "eager": lambda: case.peer(*case.args),
            "inductor": lambda: fused(*case.args),
        },
    )
    best = min(times["eager"], times["inductor"])
    rates = ", ".join(f"{k} {case.amount / v * 1e3:.2f}" for k, v in times.items())
    print(f"{name}: {rates} {case.unit}, ratio {best / times['ours']:.2f}, error {error:.1e}")


def run_model(torch, name, dtype="float16"):
    """A model in one CUDA graph, beside Inductor's."""
    import tvm
    from tvm import relax

    from bench import model_ops, models

    model = models.Model(name, dtype=dtype)
    begin = time.perf_counter()
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        executable = tvm.compile(model_ops.relax_module(model), "cuda")
    compiled = time.perf_counter() - begin
    main = relax.VirtualMachine(executable, tvm.cuda(0))["main"]
    theirs = [torch.from_numpy(x).cuda() for x in model.inputs()]
    args = [tvm.runtime.tensor(x, tvm.cuda(0)) for x in model.inputs()]
    module = model_ops.torch_module(model).cuda()
    with torch.no_grad():
        expected = module(*theirs)
        begin = time.perf_counter()
        fused = torch.compile(module, mode="reduce-overhead")
        fused(*theirs)
        fusing = time.perf_counter() - begin
        result = main(*args)
        first = result if len(expected) == 1 else result[0]
        error = _error(torch, torch.from_numpy(first.numpy()).cuda(), expected[0])
        times = _race(torch, {"ours": lambda: main(*args), "inductor": lambda: fused(*theirs)})
    ratio = times["inductor"] / times["ours"]
    shown = ", ".join(f"{k} {v:.3f} ms" for k, v in times.items())
    print(
        f"{name} {dtype}: {shown}, ratio {ratio:.2f}, error {error:.1e}, "
        f"compiled in {compiled:.1f} s (inductor {fusing:.1f} s)"
    )


def main(words):
    import torch
    import tvm

    if not tvm.cuda(0).exist:
        raise SystemExit("bench.cuda: there is no NVIDIA GPU here")
    wanted = {name: run_row for name in ROWS}
    wanted |= {name: run_model for name in ("resnet50", "mobilenet_v2", "bert_base")}
    for name, run in wanted.items():
        if not words or any(word in name for word in words):
            run(torch, name)


if __name__ == "__main__":
    main(sys.argv[1:])
