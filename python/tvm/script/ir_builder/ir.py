# SPDX-License-Identifier: Apache-2.0
"""Building modules."""

from tvm.ir import GlobalVar, IRModule, make_node

from .base import IRBuilder, IRBuilderFrame


class IRModuleFrame(IRBuilderFrame):
    """The functions, attributes and global infos of a module."""

    def __init__(self):
        super().__init__()
        self.global_vars = {}  # name -> GlobalVar
        self.signatures = {}  # name -> declared function, for the types of calls
        self.functions = {}  # name -> function
        self.pyfuncs = {}  # name -> Python function
        self.attrs = {}
        self.global_infos = {}

    def _finish(self):
        missing = [name for name in self.global_vars if name not in self.functions]
        if missing:
            raise ValueError(
                f"ir_module: expected a definition of {missing[0]}, got a declaration only"
            )
        functions = {self.global_vars[name]: func for name, func in self.functions.items()}
        module = IRModule(functions, self.attrs, self.global_infos)
        if self.pyfuncs:
            module.pyfuncs.update(self.pyfuncs)
        IRBuilder.current().result = module


def ir_module():
    """The frame of a module."""
    return IRModuleFrame()


def _module():
    frame = IRBuilder.current().find(IRModuleFrame)
    if frame is None:
        raise ValueError("expected to be inside `with I.ir_module():`")
    return frame


def decl_function(func_name, func_signature):
    """Declares a function, so that others can call it before it is defined."""
    frame = _module()
    if func_name in frame.global_vars:
        raise ValueError(f"ir_module: expected unique function names, got '{func_name}' twice")
    frame.global_vars[func_name] = GlobalVar(func_name)
    frame.signatures[func_name] = func_signature
    return frame.global_vars[func_name]


def def_function(func_name, func):
    """Defines a function, declared before or not."""
    frame = _module()
    if func_name in frame.functions:
        raise ValueError(f"ir_module: expected unique function names, got '{func_name}' twice")
    if func_name not in frame.global_vars:
        frame.global_vars[func_name] = GlobalVar(func_name)
    frame.functions[func_name] = func


def module_attrs(attrs, allow_overwrite=False):
    """Sets attributes of the module. When Python runs the body of a class, there is none yet."""
    if IRBuilder.is_in_scope():
        for key, value in attrs.items():
            module_set_attr(key, value, allow_overwrite)


def current_ir_module():
    return _module()


def module_get_attrs():
    return dict(_module().attrs)


def module_get_attr(attr_key):
    return _module().attrs.get(attr_key)


def module_set_attr(attr_key, attr_value, allow_overwrite=False):
    attrs = _module().attrs
    if attr_key in attrs and not allow_overwrite:
        raise ValueError(f"module_attrs: expected each attribute once, got '{attr_key}' twice")
    attrs[attr_key] = attr_value


def module_global_infos(global_infos):
    """Sets what the module declares for all its functions."""
    if IRBuilder.is_in_scope():
        frame = _module()
        if frame.global_infos:
            raise ValueError("module_global_infos: expected one call per module, got two")
        frame.global_infos = dict(global_infos)


def dummy_global_info():
    return make_node("ir.DummyGlobalInfo")


def vdevice(target=None, vdevice_id=0, memory_scope="global"):
    """A virtual device."""
    from tvm.ir import VDevice
    from tvm.target import Target

    return VDevice(Target(target) if isinstance(target, dict) else target, vdevice_id, memory_scope)


def lookup_vdevice(target_kind=None, device_index=-1):
    """A virtual device that the module declares."""
    if not IRBuilder.is_in_scope():
        return None
    devices = _module().global_infos.get("vdevice", [])
    if isinstance(target_kind, str):
        devices = [d for d in devices if str(d.target.kind.name) == target_kind]
    if not devices or device_index >= len(devices):
        raise ValueError(
            f"lookup_vdevice: expected a device of the module, got {target_kind}:{device_index}"
        )
    return devices[max(device_index, 0)]
