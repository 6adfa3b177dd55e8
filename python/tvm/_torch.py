# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside us, without waiting for it: the object layer imports it wherever it is installed,
which takes seconds. Here that import finds nothing, and what it would have set up follows when
somebody imports torch for their own purposes.
"""

import importlib
import importlib.util
import sys
import threading


class _Finder:
    """Answers for the name `torch`: there is none while the object layer is imported."""

    hidden_from = None  # the thread to which torch does not exist

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        if self.hidden_from == threading.get_ident():
            raise ModuleNotFoundError("torch is imported later", name=name)
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)  # it may be installed later
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            try:
                execute(module)
            except BaseException:
                sys.meta_path.insert(0, self)
                raise
            set_up(module)

        spec.loader.exec_module = exec_module
        return spec


def import_object_layer():
    """Imports tvm_ffi, but not torch."""
    if "tvm_ffi" in sys.modules or "torch" in sys.modules:
        import tvm_ffi

        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    finder.hidden_from = threading.get_ident()
    try:
        import tvm_ffi  # noqa: F401
    finally:
        finder.hidden_from = None


def set_up(torch):
    """What tvm_ffi does at its own import beside torch: fast exchange of tensors, streams."""
    import tvm_ffi
    from tvm_ffi import _convert, _optional_torch_c_dlpack, core, stream

    extension = _optional_torch_c_dlpack
    extension._LIB = extension.load_torch_c_dlpack_extension()
    extension.patch_torch_cuda_stream_protocol()
    core._convert_torch_dtype_to_ffi_dtype = _dtype
    _convert.torch = torch
    importlib.reload(stream)  # it has another use_torch_stream without torch
    tvm_ffi.use_torch_stream = stream.use_torch_stream
    tvm_ffi.StreamContext = stream.StreamContext


def _dtype(torch_dtype):
    import tvm_ffi

    return tvm_ffi.dtype(str(torch_dtype).removeprefix("torch."))


def register():
    """Lets C++ ask what an object of another library stands for where a dtype is expected."""
    import tvm_ffi
    from tvm_ffi import core

    def dtype_of_foreign_object(value):
        torch = sys.modules.get("torch")
        if isinstance(value, core.OpaquePyObject):
            value = value.pyobject()
        return _dtype(value) if torch and isinstance(value, torch.dtype) else None

    tvm_ffi.register_global_func(
        "runtime.dtype_of_foreign_object", dtype_of_foreign_object, override=True
    )
