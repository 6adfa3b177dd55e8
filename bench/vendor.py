# SPDX-License-Identifier: Apache-2.0
"""Layers with constant weights beside the fastest of the libraries that have them."""

import tempfile

import numpy as np

from . import kernels, layers, measure, models, onnx_files, peers
from .measure import Row


def _layer(name, subjects, options):
    """Rows of one layer; whoever does not have it is left out."""
    found = {}
    for subject in subjects:
        try:
            made = subject.ask("prepare_model", subject.subject.file, name, options.seed)
        except RuntimeError as error:
            print(f"note: {name}: {error}")
            continue
        if made is not None:
            found[subject.name] = peers.Remote(subject, made[0])
    results = {who: one.results() for who, one in found.items()}
    for who, got in results.items():
        for a, b in zip(got, results["tvm"], strict=True):
            if np.abs(a - b).max() > 1e-4 * np.abs(b).max():
                raise AssertionError(f"{name}: {who} has other results than we")
    samples = measure.time_alternating(found, options.rounds, options.seconds)
    for one in found.values():
        one.worker.ask("forget", one.index)
    return [Row(name, who, samples[who]) for who in found]


def _summary(what, rows):
    """Prints how the best peer of each layer compares: geometric mean, and the worst."""
    cases = {}
    for row in rows:
        cases.setdefault(row.case, []).append(row)
    best = {}
    for case, (ours, *others) in cases.items():
        if others:
            best[case] = min(row.ratio(ours) for row in others)
    if best:
        worst = min(best, key=best.get)
        mean = float(np.exp(np.mean(np.log(list(best.values())))))
        print(f"{what}: best peer x ours {mean:.2f} ({len(best)}), worst {best[worst]:.2f} {worst}")


def products(name, subjects, options):
    """Products by a constant: squares, few rows, odd sizes; NumPy, PyTorch, OpenVINO."""
    chosen = [s for s in subjects if s.name in ("tvm", *layers.PRODUCT_PEERS)]
    rows = []
    for what, (wanted, shapes) in layers.PRODUCTS.items():
        made = []
        for sizes in shapes:
            made += _layer(layers.product_name(sizes), chosen, options)
        _summary(f"{what} (wanted {wanted})", made)
        rows += made
    return rows


def convolutions(name, subjects, options):
    """Distinct convolutions of ResNet-50 and MobileNetV2; PyTorch, ONNX Runtime, OpenVINO."""
    chosen = [s for s in subjects if s.name in ("tvm", *layers.CONVOLUTION_PEERS)]
    rows = []
    for what in ("resnet50", "mobilenet_v2"):
        made = []
        for sizes in layers.convolutions(models.MODELS[what][0]):
            made += _layer(layers.convolution_name(sizes), chosen, options)
        _summary(f"convolutions of {what} (wanted 0.95)", made)
        rows += made
    return rows


def quantized(name, subjects, options):
    """ResNet-50 between QuantizeLinear and DequantizeLinear, a product by 4 bits; ONNX Runtime."""
    chosen = [s for s in subjects if s.name in ("tvm", "onnxruntime", "openvino")]
    rows = []
    for file in onnx_files.FILES:
        with tempfile.TemporaryDirectory() as folder:
            rows += onnx_files.rows(file, folder, chosen, options)
    return rows


def turns(name, subjects, options):
    """The list in one process with PyTorch, which is called in turns with ours."""
    rows, worker = [], peers.Worker("tvm")
    for case in [*("sigmoid", "gelu", "softmax", "layer_norm"), *kernels.LISTED]:
        inputs = (kernels.KERNELS | kernels.LISTED)[case].inputs(options.seed)
        both = [worker.prepare(case, inputs, subject=subject) for subject in ("tvm", "torch")]
        slower = max(measure.calibrate(one, options.seconds)[1] for one in both)
        number, indices = max(1, round(options.seconds / slower)), [one.index for one in both]
        worker.ask("in_turns", indices, number)
        samples = [worker.ask("in_turns", indices, number) for _ in range(options.rounds)]
        for who, taken in zip(("tvm", "torch"), zip(*samples, strict=True), strict=True):
            rows.append(Row(f"{case}, in turns", who, [t / number for t in taken]))
        for index in indices:
            worker.ask("forget", index)
    worker.close()
    _summary(f"{name} (wanted 0.9 each)", rows)
    return rows
