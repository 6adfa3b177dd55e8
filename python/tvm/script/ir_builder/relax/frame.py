# SPDX-License-Identifier: Apache-2.0
"""Frames: functions, sequences, dataflow blocks and branches of the graph being built."""

import tvm_ffi

from tvm import relax
from tvm.ir import DictAttrs

from ..base import IRBuilder, IRBuilderFrame
from ..ir import IRModuleFrame, def_function


class _Functions:
    """The registered functions script._relax_*, looked up once."""

    def __getattr__(self, name):
        value = tvm_ffi.get_global_func("script._relax_" + name.rstrip("_"))
        setattr(self, name, value)
        return value


native = _Functions()


def _new_builder():
    """A builder that keeps operators as they were written."""
    from tvm.relax import BlockBuilder  # noqa: F401  (the class of what is made)

    return tvm_ffi.get_global_func("relax.BlockBuilder._create")(None, False)


class RelaxFrame(IRBuilderFrame):
    """A frame of a function of the graph."""


class SeqExprFrame(RelaxFrame):
    """Blocks of bindings. Bindings outside of dataflow blocks make plain blocks."""

    def __init__(self):
        super().__init__()
        self.binding_blocks, self.output = [], None

    def __enter__(self):
        super().__enter__()
        self.block_builder = function_frame("SeqExpr").block_builder
        self.block_builder._begin_binding_block()
        return self

    def __exit__(self, exc_type, exc_value, trace):
        if exc_type is None:
            self.end_block()
        super().__exit__(exc_type, exc_value, trace)

    def end_block(self):
        self.binding_blocks.append(self.block_builder._end_block())

    def _finish(self):
        if self.output is None:
            raise ValueError("SeqExpr: expected a value at its end")
        emit(native.sequence(self.binding_blocks, self.output))


class FunctionFrame(SeqExprFrame):
    """A function, of the module or local."""

    def __init__(self, is_pure=True, is_private=False):
        super().__init__()
        self.is_pure, self.is_private = is_pure, is_private
        self.name, self.params, self.ret_struct_info, self.attrs = None, [], None, {}
        self.function = None  # at the end
        self.block_builder = None

    def __enter__(self):
        outer = IRBuilder.current().find(FunctionFrame)
        self.is_local = outer is not None
        self.block_builder = outer.block_builder if outer else _new_builder()
        super().__enter__()
        self._scope_open = False
        return self

    def begin_body(self):
        """The parameters are complete: what their shapes define is known from here on."""
        if not self._scope_open:
            self.block_builder.begin_scope(self.params)
            self._scope_open = True

    def __exit__(self, exc_type, exc_value, trace):
        if exc_type is None:
            self.begin_body()
        super().__exit__(exc_type, exc_value, trace)
        if self._scope_open:
            self.block_builder.end_scope()

    def _finish(self):
        if self.output is None:
            raise ValueError("function: expected a return, got a function that returns nothing")
        attrs = dict(self.attrs)
        if not self.is_private and not self.is_local and self.name is not None:
            attrs.setdefault("global_symbol", self.name)
        body = native.sequence(self.binding_blocks, self.output)
        info = self.ret_struct_info
        self.function = relax.Function(self.params, body, info, self.is_pure, DictAttrs(attrs))
        builder = IRBuilder.current()
        if self.is_local:
            return
        module = builder.find(IRModuleFrame)
        if module is None:
            builder.result = self.function
            return
        if self.name is None:
            raise ValueError("function: expected a name inside a module")
        def_function(self.name, self.function)
        native.set_info(module.global_vars[self.name], self.function.struct_info)


class BlockFrame(RelaxFrame):
    """A dataflow block."""

    def __init__(self, is_dataflow=True):
        super().__init__()
        self.is_dataflow, self.output_vars = is_dataflow, None

    def __enter__(self):
        frames = IRBuilder.current().frames
        if not frames or not isinstance(frames[-1], SeqExprFrame):
            raise ValueError("dataflow: expected to be directly inside a function or a branch")
        self._outer = frames[-1]
        self._outer.end_block()
        self._outer.block_builder._begin_dataflow_block()
        return super().__enter__()

    def _finish(self):
        builder = self._outer.block_builder
        outputs = self.output_vars or []
        block, published = native.end_dataflow(builder, outputs)
        self.published = list(zip(outputs, published, strict=True))
        self._outer.binding_blocks.append(block)
        builder._begin_binding_block()


class _BranchFrame(SeqExprFrame):
    field = ""

    def __enter__(self):
        frames = IRBuilder.current().frames
        what = type(self).__name__[:-5]
        if not frames or not isinstance(frames[-1], IfFrame):
            raise ValueError(f"{what}: expected to be directly inside an If")
        if getattr(frames[-1], self.field) is not None:
            raise ValueError(f"{what}: expected once in an If, got twice")
        return super().__enter__()

    def _finish(self):
        found = native.end_branch(self.binding_blocks)
        if not found:
            raise ValueError("if: expected each branch to end in a binding, got an empty branch")
        setattr(IRBuilder.current().frames[-1], self.field, found)


class ThenFrame(_BranchFrame):
    field = "then_branch"


class ElseFrame(_BranchFrame):
    field = "else_branch"


class IfFrame(RelaxFrame):
    """A choice; its branches end in bindings of one name, which the choice is bound to."""

    def __init__(self, condition):
        super().__init__()
        self.condition, self.then_branch, self.else_branch = condition, None, None
        self.var = None

    def _finish(self):
        if self.then_branch is None or self.else_branch is None:
            raise ValueError("if: expected both branches, got one: write an else")
        (then, then_var), (other, other_var) = self.then_branch, self.else_branch
        if then_var.name_hint != other_var.name_hint:
            raise ValueError(
                "if: expected both branches to end in a binding of one name, got "
                f"'{then_var.name_hint}' and '{other_var.name_hint}'"
            )
        builder = function_frame("if").block_builder
        self.var = native.if_(builder, self.condition, then, other, then_var, other_var)
        self.var_name = then_var.name_hint


def function_frame(what):
    """The innermost function."""
    found = IRBuilder.current().find(FunctionFrame)
    if found is None:
        raise ValueError(f"{what}: expected to be inside a function of the graph")
    return found


def emit(value, info=None, name=""):
    """Binds a value to a new variable in the innermost block."""
    frames = IRBuilder.current().frames
    frame = function_frame("emit")
    frame.begin_body()
    last = frames[-1]
    if isinstance(last, BlockFrame) and last.output_vars is not None:
        raise ValueError("dataflow: expected no bindings after R.output")
    if isinstance(last, SeqExprFrame) and last.output is not None:
        raise ValueError("function: expected no bindings after the return")
    return native.emit(frame.block_builder, value, info, name)
