# SPDX-License-Identifier: Apache-2.0
"""Sessions on devices. `LocalSession` is this machine; those on others are not here yet."""

import os
import shutil
import tempfile

from tvm import runtime
from tvm._aliases import no_attribute


class LocalSession:
    """A session on this machine: what a remote one does, for scripts that take either.

    Uploaded files live in a folder of the session's own.
    """

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tvm-session-")

    def _path(self, name):
        path = os.path.normpath(os.path.join(self._folder.name, str(name)))
        if not path.startswith(self._folder.name + os.sep):
            raise ValueError(f"LocalSession: expected a path inside of the session, got '{name}'")
        return path

    def upload(self, data, target=None):
        """Copies a file, or bytes, into the session, under `target` or the file's name."""
        is_bytes = isinstance(data, (bytes, bytearray))
        if is_bytes and not target:
            raise ValueError("upload: expected `target`, the name of the bytes")
        path = self._path(target or os.path.basename(os.fspath(data)))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if is_bytes:
            with open(path, "wb") as file:
                file.write(data)
        else:
            shutil.copyfile(data, path)

    def download(self, path):
        """The contents of a file of the session."""
        with open(self._path(path), "rb") as file:
            return bytearray(file.read())

    def remove(self, path):
        """Removes a file of the session."""
        os.remove(self._path(path))

    def listdir(self, path="."):
        """The names of the session's files, as one text with commas between."""
        folder = self._folder.name if path in ("", ".") else self._path(path)
        return ",".join(sorted(os.listdir(folder)))

    def load_module(self, path):
        """A module of an uploaded library, as tvm.runtime.load_module gives it."""
        return runtime.load_module(self._path(path))

    def download_linked_module(self, path):
        """The contents of an uploaded archive or object, linked to a shared library."""
        from tvm.runtime.export import link_shared

        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "linked.so")
            link_shared(library, [self._path(path)])
            with open(library, "rb") as file:
                return bytearray(file.read())

    def get_function(self, name):
        """A global function."""
        import tvm_ffi

        return tvm_ffi.get_global_func(name)

    def system_lib(self):
        """The functions that are linked into this program."""
        import tvm_ffi

        return tvm_ffi.system_lib()

    def device(self, dev_type, dev_id=0):
        """A device of this machine."""
        return runtime.device(dev_type, dev_id)


def _device_method(kind):
    def make(self, dev_id=0):
        return self.device(kind, dev_id)

    make.__name__ = kind
    make.__doc__ = f"The device {kind}, by index."
    return make


for _name, _kind in (
    *((kind, kind) for kind in ("cpu", "cuda", "vulkan", "metal", "rocm", "ext_dev", "hexagon")),
    ("webgpu", "webgpu"),
    ("cl", "opencl"),
):
    setattr(LocalSession, _name, _device_method(_kind))


def __getattr__(name):
    raise no_attribute(__name__, name, lambda: ["LocalSession"])
