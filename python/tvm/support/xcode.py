# SPDX-License-Identifier: Apache-2.0
"""Apple's compilers, through xcrun."""

import os

from . import _tools, tar, utils

_INSTALL = "install Xcode and its command line tools (xcode-select --install)"
# How clang and metal spell the oldest system that the result is to run on.
_MIN_VERSION = {
    "macosx": "-mmacosx-version-min={}",
    "iphoneos": "-miphoneos-version-min={}",
    "iphonesimulator": "-mios-simulator-version-min={}",
}


def xcrun(cmd):
    """Runs a tool of Xcode and returns what it prints."""
    command = ["xcrun", *_tools.words(cmd)]
    return _tools.run(command, f"run {command[1]}", install=_INSTALL).strip()


def _min_version(sdk, min_os_version):
    from .._aliases import did_you_mean

    if sdk not in _MIN_VERSION:
        names = ", ".join(_MIN_VERSION)
        near = did_you_mean(sdk, _MIN_VERSION)
        raise ValueError(f"xcode: expected an sdk out of {names}, got {sdk!r}{near}")
    return [_MIN_VERSION[sdk].format(min_os_version)] if min_os_version is not None else []


def create_dylib(output, objects, arch, sdk="macosx", min_os_version=None):
    """Links files into a dynamic library for an architecture (arm64, x86_64)."""
    flags = _min_version(sdk, min_os_version)
    clang = xcrun(["-sdk", sdk, "-find", "clang"])
    sysroot = xcrun(["-sdk", sdk, "--show-sdk-path"])
    with utils.tempdir() as temp:
        files = tar.link_inputs(temp, objects)
        command = [clang, "-dynamiclib", "-arch", arch, "-isysroot", sysroot, *flags]
        command += ["-undefined", "dynamic_lookup", "-o", os.fspath(output), *files]
        _tools.run(command, f"link {output}", install=_INSTALL)


def compile_metal(code, path_target=None, sdk="macosx", min_os_version=None):
    """Compiles Metal source to a library, returned as a bytearray and written to `path_target`."""
    flags = _min_version(sdk, min_os_version)
    with utils.tempdir() as temp:
        source, air, library = map(temp.relpath, ("kernel.metal", "kernel.air", "kernel.metallib"))
        (temp / "kernel.metal").write_text(code)
        xcrun(["-sdk", sdk, "metal", "-O3", *flags, "-c", source, "-o", air])
        xcrun(["-sdk", sdk, "metallib", air, "-o", library])
        data = bytearray((temp / "kernel.metallib").read_bytes())
    if path_target is not None:
        with _tools.replacing(path_target) as partial, open(partial, "wb") as file:
            file.write(data)
    return data


def compile_coreml(model, model_name="main", out_dir="."):
    """Saves a Core ML model, compiles it into `out_dir` and returns the compiled model's path."""
    with utils.tempdir() as temp:
        saved = temp.relpath(f"{model_name}.mlmodel")
        model.save(saved)
        xcrun(["coremlc", "compile", saved, os.fspath(out_dir)])
    compiled = os.path.join(out_dir, f"{model_name}.mlmodelc")
    if not os.path.exists(compiled):
        raise RuntimeError(f"compile_coreml: coremlc ended well but did not write {compiled}")
    return compiled


create_dylib.output_format = "dylib"
