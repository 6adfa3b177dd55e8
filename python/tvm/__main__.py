# SPDX-License-Identifier: Apache-2.0
"""The command `tvm`, also python -m tvm: verify and explain are done here, all others (compile,
run, bench, profile, inspect, info) by the native program that lies beside the libraries."""

import argparse
import os
import sys

from . import _libs

COMMANDS = ("verify", "explain")


def _become_native(words):
    """Runs the native program in the place of this process."""
    programs = [folder.parent / "bin" / "tvm" for folder in _libs.search_path()]
    for program in programs:
        if os.access(program, os.X_OK):
            os.execv(program, ["tvm", *words])
    raise SystemExit(f"tvm: none of these programs exists: {', '.join(map(str, programs))}")


def _shapes(texts):
    """x=2,3,224,224 -> {"x": [2, 3, 224, 224]}"""
    shapes = {}
    for text in texts or ():
        name, _, dims = text.rpartition("=")
        extents = [dim for dim in dims.split(",") if dim]
        shapes[name] = [int(dim) for dim in extents if dim.isdecimal()]
        if not name or len(shapes[name]) != len(extents):
            raise SystemExit(f"--shape: expected name=2,3,4, got {text!r}")
    return shapes


def _gigabytes(text):
    """A size in gigabytes as bytes."""
    try:
        size = int(float(text) * 2**30)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"expected a number of gigabytes above 0, got {text!r}")
    return size


def _parser():
    parser = argparse.ArgumentParser("tvm")
    commands = parser.add_subparsers(dest="command", required=True)
    model = argparse.ArgumentParser(add_help=False)
    model.add_argument("model", help="the path of a model, .onnx or .pt2 of torch.export.save")
    model.add_argument("--target", default="llvm", help="llvm, this machine, by default")
    verify = commands.add_parser(
        "verify",
        parents=[model],
        help="compare a model with its own framework",
        description="Runs a model here and by ONNX Runtime or PyTorch, and names the first value "
        "that differs. Exits with 0 where they agree, else with 1.",
    )
    verify.add_argument(
        "--shape", action="append", metavar="NAME=2,3", help="of an input; may be given repeatedly"
    )
    verify.add_argument(
        "--tolerance", type=float, default=1e-4, help="max|a-b| / max|b| at most; 1e-4 by default"
    )
    verify.add_argument("--seed", type=int, default=0, help="of the random inputs")
    verify.add_argument(
        "--memory", type=_gigabytes, metavar="GIGABYTES", help="limits the process's address space"
    )
    explain = commands.add_parser(
        "explain",
        parents=[model],
        help="the kernels of a model, and how fast they are",
        description="Prints a row for each kernel of the compiled model: how often it is called, "
        "its operations and memory, which rule schedules it.",
    )
    explain.add_argument(
        "--report",
        metavar="PAGE.html",
        default=True,
        help="measures each kernel, too, and writes this page",
    )
    return parser


def _verify(options):
    if options.memory is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (options.memory, options.memory))
    if options.model.endswith(".pt2"):
        from tvm.relax.frontend.torch import verify as run
    else:
        from tvm.relax.frontend.onnx import verify as run

    found = run(
        options.model,
        shape_dict=_shapes(options.shape) or None,
        tolerance=options.tolerance,
        target=options.target,
        seed=options.seed,
    )
    print(found)
    return 0 if found.agrees else 1


def _explain(options):
    import tvm

    tvm.compile(options.model, options.target, explain=options.report)
    return 0


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] not in COMMANDS:
        _become_native(argv)
    options = _parser().parse_args(argv)
    try:
        return {"verify": _verify, "explain": _explain}[options.command](options)
    except Exception as error:
        if "TVM_FULL_BACKTRACE" in os.environ:
            raise
        # As the native commands: the reason alone.
        raise SystemExit(f"tvm: {error or type(error).__name__}") from error


if __name__ == "__main__":
    sys.exit(main())
