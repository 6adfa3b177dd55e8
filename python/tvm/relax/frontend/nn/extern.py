# SPDX-License-Identifier: Apache-2.0
"""Functions of models that come compiled, or as C++ and CUDA sources."""

import shutil
import tempfile
from pathlib import Path

from tvm import libinfo, tir
from tvm.runtime import load_static_library

from . import op
from .exporter import add_extern

_SUFFIXES = {"cpp": ".cc", "cu": ".cu"}


class ExternModule:
    """Functions by name. `symbols` gives for each a function of the arguments that gives tensors
    of the results' shapes and dtypes (`nn.Tensor.placeholder`)."""

    def __init__(self, symbols):
        self._symbols = dict(symbols)

    def __getitem__(self, func_name):
        if func_name not in self._symbols:
            raise KeyError(
                f"{type(self).__name__}: expected one of {list(self._symbols)}, got '{func_name}'"
            )
        infer = self._symbols[func_name]

        def call(*args):
            for arg in args:
                if not isinstance(arg, (op.Tensor, tir.PrimExpr, int, float, str)):
                    raise TypeError(
                        f"{func_name}: expected tensors, numbers and texts, got "
                        f"{type(arg).__name__}"
                    )
            add_extern(self)
            return op.extern(func_name, list(args), out=infer(*args))

        return call

    def load(self):
        """The runtime module with the functions."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method load")


class ObjectModule(ExternModule):
    """Functions of an object file, which is linked when the compiled model is exported."""

    def __init__(self, symbols, filepath):
        super().__init__(symbols)
        self.filepath = Path(filepath)
        if not self.filepath.is_file():
            raise ValueError(f"ObjectModule: expected an object file, got {self.filepath}")

    def load(self):
        return load_static_library(self.filepath, func_names=list(self._symbols))


class SourceModule(ExternModule):
    """Functions of a C++ or CUDA source: its text or its file. They are exported with
    TVM_FFI_DLL_EXPORT_TYPED_FUNC and take tensors as `DLTensor*` or `tvm::ffi::TensorView`."""

    def __init__(
        self, symbols, source_code, source_format,
        compile_options=None, compiler=None, output_format="obj",
    ):  # fmt: skip
        super().__init__(symbols)
        if source_format not in _SUFFIXES:
            raise ValueError(f"SourceModule: expected format cpp or cu, got {source_format!r}")
        if output_format != "obj":
            raise ValueError(f"SourceModule: expected output_format obj, got {output_format!r}")
        is_file = isinstance(source_code, Path) or (
            "\n" not in source_code and Path(source_code).is_file()
        )
        self.source_code = Path(source_code).read_text(encoding="utf-8") if is_file else source_code
        self.source_format, self.compiler = source_format, compiler
        self.output_format = output_format
        if compile_options is None:
            compile_options = self.get_compile_options(source_format)
        self.compile_options = list(compile_options)

    @staticmethod
    def tvm_home():
        """The folder of this package."""
        return Path(libinfo.__file__).resolve().parent

    @staticmethod
    def get_includes(tvm_pkg=None):
        """Folders of headers: ours, the object layer's, and those of packages below 3rdparty."""
        paths = [Path(path) for path in libinfo.find_include_path()]
        for package in tvm_pkg or ():
            paths.append(SourceModule.tvm_home() / "3rdparty" / package)
        missing = [path for path in paths if not path.is_dir()]
        if missing:
            raise ValueError(f"SourceModule: expected a folder of headers, got {missing[0]}")
        return paths

    @staticmethod
    def get_compile_options(source_format, tvm_pkg=None):
        """What the compiler gets unless options are given."""
        includes = [f"-I{path}" for path in SourceModule.get_includes(tvm_pkg)]
        if source_format == "cpp":
            return ["-c", "-O3", "-std=c++17", "-fPIC", *includes]
        if source_format == "cu":
            return ["-c", "-O3", "-std=c++17", "-Xcompiler=-fPIC", *includes]
        raise ValueError(f"SourceModule: expected format cpp or cu, got {source_format!r}")

    def compile(self, output_path):
        """Writes the object file; a RuntimeError has the compiler's text."""
        from tvm.support import _tools, cc

        compiler = self.compiler or ("nvcc" if self.source_format == "cu" else cc.get_cc())
        if compiler is None or shutil.which(_tools.command_of(compiler)[0]) is None:
            raise RuntimeError(f"SourceModule: expected a compiler of this machine, got {compiler}")
        with tempfile.TemporaryDirectory(prefix="tvm-") as folder:
            source = Path(folder) / f"main{_SUFFIXES[self.source_format]}"
            source.write_text(self.source_code, encoding="utf-8")
            command = [*_tools.command_of(compiler), *self.compile_options]
            command += [str(source), "-o", str(output_path)]
            _tools.run(command, "compile the source module")

    def load(self):
        with tempfile.TemporaryDirectory(prefix="tvm-") as folder:
            output = Path(folder) / "main.o"
            self.compile(output)
            return load_static_library(output, func_names=list(self._symbols))
