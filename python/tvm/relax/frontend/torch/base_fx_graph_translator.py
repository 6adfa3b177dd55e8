# SPDX-License-Identifier: Apache-2.0
"""What importers of PyTorch graphs share: values of nodes, and conversions by the user."""

from collections.abc import MutableMapping

import tvm_ffi
from torch import fx

from tvm import relax

_get = tvm_ffi.get_global_func("relax.frontend.torch._get")
_set = tvm_ffi.get_global_func("relax.frontend.torch._set")
_importer = tvm_ffi.get_global_func("relax.frontend.torch._importer")


class _Environment(MutableMapping):
    """The values of nodes so far, which the importer holds by name."""

    def __init__(self, handle):
        self._handle, self._nodes = handle, {}

    def __getitem__(self, node):
        try:
            return _get(self._handle, node.name)
        except ValueError:
            raise KeyError(node) from None

    def __setitem__(self, node, value):
        self._nodes[node] = None
        _set(self._handle, node.name, value)

    def __delitem__(self, node):
        raise TypeError("values of nodes cannot be deleted")

    def __iter__(self):
        return iter(self._nodes)

    def __len__(self):
        return len(self._nodes)


def _blocks(func):
    return func.body.blocks if isinstance(func, relax.Function) else []


class BaseFXGraphImporter:
    """The importer as a user's conversion sees it."""

    def __init__(self):
        self.block_builder = relax.BlockBuilder()
        self._handle = _importer(self.block_builder)
        self.env = _Environment(self._handle)
        self.convert_map = {}

    def update_convert_map(self, custom_convert_map):
        """Adds conversions f(node, importer), by name of the function or overload."""
        for name, convert in custom_convert_map.items():
            if not callable(convert):
                raise TypeError(f"custom_convert_map[{name!r}]: expected a function, got {convert}")
            self.convert_map[name] = convert

    def _imported(self):
        """What was imported. Around branches, which dataflow blocks do not have, there are such."""
        mod = self.block_builder.get()
        blocks = [b for f in mod.functions.values() for b in _blocks(f)]
        if all(isinstance(block, relax.DataflowBlock) for block in blocks):
            return mod
        return relax.transform.ConvertToDataflow()(mod)

    @staticmethod
    def shape_of(tensor):
        """The shape of a value."""
        if isinstance(tensor, relax.Expr):
            if not isinstance(tensor.struct_info, relax.TensorStructInfo):
                raise TypeError(f"shape_of: expected a tensor, got {tensor.struct_info}")
            return tensor.struct_info.shape
        if hasattr(tensor, "shape"):
            return tensor.shape
        raise TypeError(f"shape_of: expected a tensor, got {type(tensor).__name__}")

    def retrieve_args(self, node):
        """The values of a node's arguments."""
        return self._retrieve_args(node.args)

    def _retrieve_args(self, arg):
        if isinstance(arg, fx.Node):
            return self.env[arg]
        if isinstance(arg, (list, tuple)):
            return type(arg)(self._retrieve_args(item) for item in arg)
        if isinstance(arg, dict):
            return {self._retrieve_args(k): self._retrieve_args(v) for k, v in arg.items()}
        return arg

    def _custom(self, node):
        """The user's conversion of a node, or None."""
        name = getattr(node.target, "__name__", None) or str(node.target)
        convert = self.convert_map.get(name) or self.convert_map.get(str(node.target))
        return None if convert is None else lambda: convert(node, self)
