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
        try:
            shapes[name] = [int(dim) for dim in dims.split(",") if dim]
        except ValueError:
            name = ""
        if not name:
            raise SystemExit(f"--shape: expected name=2,3,4, got {text!r}")
    return shapes


def _limit_memory(gigabytes):
    import resource

    limit = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] not in COMMANDS:
        _become_native(argv)
    parser = argparse.ArgumentParser("tvm")
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser("verify", help="compare a model with its own framework")
    verify.add_argument("model", help="a path, .onnx or .pt2")
    verify.add_argument("--shape", action="append", help="of an input: name=2,3,224,224")
    verify.add_argument("--tolerance", type=float, default=1e-4, help="max|a-b| / max|b|")
    verify.add_argument("--target", default="llvm")
    verify.add_argument("--seed", type=int, default=0, help="of the random inputs")
    verify.add_argument("--memory", type=float, help="gigabytes of address space at most")
    explain = commands.add_parser("explain", help="the kernels of a model, and how fast they are")
    explain.add_argument("model", help="a path, .onnx or .pt2")
    explain.add_argument("--target", default="llvm")
    explain.add_argument("--report", default=True, help="a page to write: kernels are measured")
    options = parser.parse_args(argv)
    if options.command == "explain":
        import tvm

        tvm.compile(options.model, options.target, explain=options.report)
        return 0
    if options.memory is not None:
        _limit_memory(options.memory)
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


if __name__ == "__main__":
    sys.exit(main())
