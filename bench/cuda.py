# SPDX-License-Identifier: Apache-2.0
"""Kernels and models on an NVIDIA GPU beside PyTorch: eager (cuBLAS, cuDNN), and Inductor.

    python -m bench.cuda                 all rows
    python -m bench.cuda sigmoid bert    those whose names contain a word
    BENCH_WARPGROUPS=1 python -m ...     with tir.warpgroup_products, 0 without; else as it chooses

Medians of runs on random data, the subjects taking turns; times by CUDA's events, compile times
once, where the caches of neither are filled. Kernels run in CUDA graphs over copies of their
arguments, so that neither Python's time nor what the cache still holds of the last run counts. A
ratio above 1: ours is faster than the best peer.
"""

import concurrent.futures
import dataclasses
import os
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
    fuses: bool = True  # Inductor may do better than eager


def _random(torch, *shape, dtype):
    return torch.randn(*shape, device="cuda").to(getattr(torch, dtype))


def _row(torch, args, tensor, peer, amount, unit, fuses=True):
    """A function of te on tensors like these, and the same in PyTorch."""
    from tvm import te

    names = [str(x.dtype).removeprefix("torch.") for x in args]
    holders = [
        te.placeholder(tuple(x.shape), name, name=f"A{i}")
        for i, (x, name) in enumerate(zip(args, names, strict=True))
    ]
    func = te.create_prim_func([*holders, tensor(*holders)])
    return Row(args, [torch.empty_like(peer(*args))], func, peer, amount, unit, fuses)


def _moved(torch, args, tensor, peer):
    """One that takes as long as reading its arguments and writing its result takes."""
    case = _row(torch, args, tensor, peer, 0, "TB/s")
    case.amount = sum(x.nbytes for x in [*args, *case.outputs]) * 1e-12
    return case


def _square(torch, n=8192, dtype="bfloat16"):
    return _random(torch, n, n, dtype=dtype)


@row
def copy_bf16(torch):
    from tvm import te

    args = [_square(torch)]
    return _moved(torch, args, lambda A: te.compute(A.shape, lambda *i: A(*i)), torch.clone)


@row
def sigmoid_bf16(torch):
    from tvm import topi

    return _moved(torch, [_square(torch)], topi.sigmoid, torch.sigmoid)


@row
def gelu_bf16(torch):
    from tvm import te, tir

    def gelu(A):
        def one(i, j):
            x = A[i, j].astype("float32")
            return (x * 0.5 * (1 + tir.erf(x * 0.7071067811865476))).astype("bfloat16")

        return te.compute(A.shape, one, name="B")

    return _moved(torch, [_square(torch)], gelu, torch.nn.functional.gelu)


@row
def softmax_bf16(torch):
    from tvm import topi

    args = [_square(torch)]
    return _moved(torch, args, lambda A: topi.nn.softmax(A, 1), lambda x: torch.softmax(x, 1))


@row
def layer_norm_bf16(torch):
    from tvm import topi

    args = [_square(torch), *(_random(torch, 8192, dtype="bfloat16") for _ in range(2))]
    return _moved(
        torch,
        args,
        lambda A, scale, bias: topi.nn.layer_norm(A, scale, bias, [1], 1e-5),
        lambda x, scale, bias: torch.nn.functional.layer_norm(x, (8192,), scale, bias, 1e-5),
    )


@row
def rms_norm_bf16(torch):
    from tvm import topi

    return _moved(
        torch,
        [_square(torch), _random(torch, 8192, dtype="bfloat16")],
        lambda A, scale: topi.nn.rms_norm(A, scale, [1], 1e-5),
        lambda x, scale: torch.nn.functional.rms_norm(x, (8192,), scale, 1e-5),
    )


def _sum(torch, axis):
    from tvm import topi

    args = [_square(torch, dtype="float32")]
    return _moved(torch, args, lambda A: topi.sum(A, axis), lambda x: torch.sum(x, axis))


@row
def sum_of_rows(torch):
    return _sum(torch, 1)


@row
def sum_of_columns(torch):
    return _sum(torch, 0)


@row
def sum_of_all(torch):
    return _sum(torch, (0, 1))


@row
def transpose(torch):
    from tvm import topi

    args = [_square(torch, dtype="float32")]
    return _moved(torch, args, topi.transpose, lambda x: x.t().contiguous())


@row
def concatenate(torch):
    from tvm import topi

    args = [_square(torch, dtype="float32") for _ in range(2)]
    return _moved(
        torch, args, lambda A, B: topi.concatenate([A, B], 1), lambda a, b: torch.cat([a, b], 1)
    )


@row
def take(torch):
    from tvm import topi

    args = [_square(torch, dtype="float32"), torch.randperm(8192, device="cuda")]
    return _moved(torch, args, lambda A, i: topi.take(A, i, 0), lambda x, i: x[i])


def _product(torch, m, n, k, dtype):
    from tvm import te

    a, b = (_random(torch, *s, dtype=dtype) for s in ((m, k), (k, n)))

    def tensor(A, B):
        r = te.reduce_axis((0, k), name="r")

        def element(i, j):
            return te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r)

        C = te.compute((m, n), element, name="C")
        return C if dtype == "float32" else te.compute(C.shape, lambda *i: C(*i).astype(dtype))

    return _row(torch, [a, b], tensor, torch.matmul, 2e-12 * m * n * k, "TFLOP/s", fuses=False)


def _products():
    for n in (4096, 8192):
        for dtype in ("bfloat16", "float16", "float32"):
            short = dtype.replace("bfloat", "bf").replace("float", "f")
            ROWS[f"product_{short}_{n}"] = lambda torch, n=n, t=dtype: _product(torch, n, n, n, t)
    for n in (4096, 14336):
        ROWS[f"vector_bf16_{n}x4096"] = lambda torch, n=n: _product(torch, 1, n, 4096, "bfloat16")


_products()


@row
def product_f16_128x768x3072(torch):
    return _product(torch, 128, 768, 3072, "float16")


def _attention(torch, causal, rows=4096, batch=4, heads=16):
    from tvm import topi

    q = _random(torch, batch, rows, heads, 128, dtype="float16")
    k, v = (_random(torch, batch, 4096, heads, 128, dtype="float16") for _ in range(2))

    def peer(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, is_causal=causal).transpose(1, 2)

    def tensor(Q, K, V):
        return topi.nn.attention(Q, K, V, causal_mask="TopLeft" if causal else None)

    amount = 4e-12 * batch * heads * rows * 4096 * 128 * (0.5 if causal else 1)
    return _row(torch, [q, k, v], tensor, peer, amount, "TFLOP/s", fuses=False)


@row
def attention_f16(torch):
    return _attention(torch, False)


@row
def attention_causal_f16(torch):
    return _attention(torch, True)


@row
def attention_of_one_token_f16(torch):
    return _attention(torch, False, rows=1, batch=8, heads=32)


# ---- groups, of which the geometric mean is shown ----
def _random_products(torch):
    """Of all sizes up to 4096, half of them multiples of 64."""
    import numpy as np

    numbers = np.random.default_rng(0)
    for i in range(100):
        sizes = (2 ** numbers.uniform(5, 12, 3)).astype(int)
        sizes = (sizes + 63) // 64 * 64 if i % 2 else (sizes + 7) // 8 * 8
        yield "x".join(map(str, sizes)), _product(torch, *map(int, sizes), "float16")


def _convolution(torch, batch, channels, size, filters, window, step):
    from tvm import te

    margin = window // 2
    out = (size + 2 * margin - window) // step + 1
    x = _random(torch, batch, channels, size, size, dtype="float16")
    w = _random(torch, filters, channels, window, window, dtype="float16")
    x, w = (v.to(memory_format=torch.channels_last) for v in (x, w))

    def tensor(X, W):
        wide = size + 2 * margin

        def padded(b, i, j, c):
            inside = [i >= margin, i < size + margin, j >= margin, j < size + margin]
            value = X[b, i - margin, j - margin, c]
            return te.if_then_else(te.all(*inside), value, te.const(0, "float16"))

        P = te.compute((batch, wide, wide, channels), padded, name="P") if margin else X
        y, z, c = (
            te.reduce_axis((0, e), n) for e, n in ((window, "y"), (window, "z"), (channels, "c"))
        )

        def value(b, i, j, o):
            a = P[b, i * step + y, j * step + z, c].astype("float32")
            return te.sum(a * W[o, y, z, c].astype("float32"), [y, z, c])

        C = te.compute((batch, out, out, filters), value, name="C")
        return te.compute(C.shape, lambda *i: C(*i).astype("float16"), name="D")

    def peer(x, w):
        x, w = (v.permute(0, 3, 1, 2) for v in (x, w))
        return torch.conv2d(x, w, None, step, margin).permute(0, 2, 3, 1)

    args = [v.permute(0, 2, 3, 1) for v in (x, w)]
    amount = 2e-12 * batch * out * out * filters * channels * window * window
    return _row(torch, args, tensor, peer, amount, "TFLOP/s", fuses=False)


def _convolutions(torch, batch):
    from bench import layers, models

    torch.backends.cudnn.benchmark = True
    for sizes in layers.convolutions(models.resnet50):
        channels, size, filters, window, step, _ = map(int, sizes)
        case = _convolution(torch, batch, channels, size, filters, window, step)
        yield f"{channels}x{size}² to {filters}, {window}x{window} step {step}", case


GROUPS = {
    "random_products_f16": _random_products,
    "convolutions_f16_1": lambda torch: _convolutions(torch, 1),
    "convolutions_f16_32": lambda torch: _convolutions(torch, 32),
}


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


def _compiled(case):
    import tvm

    asked = os.environ.get("BENCH_WARPGROUPS")
    config = {"tir.warpgroup_products": asked == "1"} if asked else {}
    with tvm.transform.PassContext(config=config):
        return tvm.compile(case.func, "cuda")


def _copies(case):
    """The arguments and results again and again: more than a cache holds."""
    size = sum(x.nbytes for x in [*case.args, *case.outputs])
    count = max(1, min(32, (256 << 20) // size))
    return [
        [[x.clone() for x in tensors] for tensors in (case.args, case.outputs)]
        for _ in range(count)
    ]


def _recorded(torch, run, copies):
    """Replays calls on all copies, one CUDA graph."""
    for args, outputs in copies:
        run(args, outputs)  # compiles and loads
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for args, outputs in copies:
            run(args, outputs)
    return graph.replay


def _measure(torch, case, mod, rounds=3):
    """({subject: milliseconds}, relative error)"""
    mod(*case.args, *case.outputs)
    error = _error(torch, case.outputs[0], case.peer(*case.args))
    subjects = {
        "ours": lambda args, outputs: mod(*args, *outputs),
        "eager": lambda args, _: case.peer(*args),
    }
    if case.fuses:
        fused = torch.compile(case.peer)
        subjects["inductor"] = lambda args, _: fused(*args)
    copies = _copies(case)
    graphs = {name: _recorded(torch, run, copies) for name, run in subjects.items()}
    times = _race(torch, graphs, rounds)
    return {name: time / len(copies) for name, time in times.items()}, error


def run_row(torch, name):
    case = ROWS[name](torch)
    times, error = _measure(torch, case, _compiled(case))
    ratio = min(v for k, v in times.items() if k != "ours") / times["ours"]
    rates = ", ".join(f"{k} {case.amount / v * 1e3:.2f}" for k, v in times.items())
    shown = f"{times['ours'] * 1e3:.1f} us, ratio {ratio:.2f}, error {error:.1e}"
    print(f"{name}: {rates} {case.unit}, {shown}", flush=True)


def run_group(torch, name):
    ratios = []
    labels, cases = zip(*GROUPS[name](torch), strict=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        modules = list(pool.map(_compiled, cases))
    for label, case, mod in zip(labels, cases, modules, strict=True):
        times, error = _measure(torch, case, mod, rounds=1)
        ratios.append((times["eager"] / times["ours"], label))
        if error > 1e-2:
            print(f"{name}: {label}: error {error:.1e}", flush=True)
    mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
    ratios.sort()
    shown = "; ".join(f"{ratio:.2f} {label}" for ratio, label in [*ratios[:6], ratios[-1]])
    print(f"{name}: {len(ratios)}, geometric mean {mean:.2f}; worst and best: {shown}", flush=True)


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
    wanted |= dict.fromkeys(GROUPS, run_group)
    wanted |= {name: run_model for name in ("resnet50", "mobilenet_v2", "bert_base")}
    for name, run in wanted.items():
        if not words or any(word in name for word in words):
            try:
                run(torch, name)
            except Exception as error:  # the other rows go on
                print(f"{name}: {type(error).__name__}: {error}"[:2000], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
