# SPDX-License-Identifier: Apache-2.0
"""BlockBuilder: programs in normal form, built binding by binding."""

import threading

import tvm_ffi

from tvm._aliases import spelled
from tvm._derive import Node, register_node

from .expr import Function, SeqExpr, Tuple, Var, as_info
from .utils import convert_to_expr, gen_call_tir_inputs

_create = tvm_ffi.get_global_func("relax.BlockBuilder._create")
_emit = tvm_ffi.get_global_func("relax.BlockBuilder._emit")
_emit.release_gil = False  # giving up the lock and taking it again would take as long as emitting
_make_seq = tvm_ffi.get_global_func("relax.MakeSeq")


# Classes that are known to be expressions: isinstance asks their metaclass, which takes longer.
_expressions = set()


def _as_expr(value):
    value = convert_to_expr(value)
    _expressions.add(type(value))
    return value


class _Stack(threading.local):
    """The builders whose functions or blocks, and the functions that are open in this thread."""

    def __init__(self):
        self.builders = []
        self.functions = []


_stack = _Stack()


class FunctionScope:
    """`with bb.function("main", [x]):`"""

    def __init__(self, block_builder, name, params, attrs, is_pure, private=False):
        if attrs is not None and not hasattr(attrs, "keys"):
            raise TypeError(f"expected a dictionary of attributes, got {type(attrs).__name__}")
        self._builder, self.name, self.attrs = block_builder, name, dict(attrs or {})
        self.params, self.is_pure, self.private = _params(params), is_pure, private
        self.result = None

    def __enter__(self):
        builder = self._builder
        _stack.functions.append(self)
        _stack.builders.append(builder)
        self._depth = builder._depth()
        builder.begin_scope(self.params or [])
        builder._begin_sequence()

    def __exit__(self, exc_type, exc_val, exc_tb):
        builder = self._builder
        _stack.builders.pop()
        _stack.functions.pop()
        builder.end_scope()
        if self.result is None:
            builder._unwind_to(self._depth)
            if exc_type is None:
                raise RuntimeError(
                    f"function '{self.name}': expected emit_func_output before the end, got none"
                )


class DataflowScope:
    """`with bb.dataflow():`"""

    def __init__(self, block_builder):
        self._builder = block_builder

    def __enter__(self):
        self._depth = self._builder._depth()
        self._builder._begin_dataflow_block()

    def __exit__(self, ptype, value, trace):
        if ptype is None:
            self._builder._close_block()
        else:
            self._builder._unwind_to(self._depth)


class TestingScope:
    """`with bb.testing_scope([n]):` symbolic variables are known, and bindings go nowhere."""

    __test__ = False

    def __init__(self, block_builder, def_vars):
        self._builder, self._vars = block_builder, list(def_vars)

    def __enter__(self):
        self._depth = self._builder._depth()
        self._builder._begin_scope_with(self._vars)
        self._builder._begin_binding_block()

    def __exit__(self, ptype, value, trace):
        self._builder.end_scope()
        self._builder._unwind_to(self._depth)


def _params(params):
    """A variable, or any nesting of tuples and lists of variables, as a list."""
    if params is None:
        return None
    if isinstance(params, Var):
        return [params]
    if isinstance(params, (list, tuple, tvm_ffi.Array)):
        return [var for item in params for var in _params(item)]
    raise TypeError(f"expected parameters that are variables, got {type(params).__name__}")


@register_node("relax.BlockBuilder")
class BlockBuilder(Node):
    """Builds graphs, in which every intermediate value has a name.

    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, w))
            out = bb.emit_output(relax.op.nn.relu(y))
        bb.emit_func_output(out)
    mod = bb.get()

    `mod` is a module to which functions are added.
    """

    def __init__(self, mod=None):
        self.__init_handle_by_constructor__(_create, mod, True)

    @staticmethod
    def current():
        """The innermost builder with an open function, or None."""
        return _stack.builders[-1] if _stack.builders else None

    def function(self, name, params=None, attrs=None, pure=True, private=False):
        """A new function, as `with bb.function(name, params):`; emit_func_output ends it.

        `params` are relax.Vars. One that is `private` has no name outside of its module, one that
        is not `pure` has side effects.
        """
        return FunctionScope(self, name, params, attrs, pure, private)

    def testing_scope(self, def_vars):
        """A scope in which symbolic variables are known."""
        return TestingScope(self, def_vars)

    def dataflow(self):
        """A new dataflow block."""
        return DataflowScope(self)

    def emit(self, expr, name_hint=""):
        """Binds an expression to a new variable, which is returned and knows its struct info."""
        # No name is cheaper to pass than an empty one.
        return _emit(
            self, expr if type(expr) in _expressions else _as_expr(expr), name_hint or None
        )

    def emit_output(self, output, name_hint=""):
        """Binds an expression to a variable that is seen behind the dataflow block."""
        return self._emit_output(_as_expr(output), name_hint)

    @spelled
    def match_cast(self, value, struct_info, name_hint=""):
        """Binds a value that is checked at run time to be as the struct info says."""
        return self._match_cast(_as_expr(value), as_info(struct_info), name_hint)

    def call_te(self, func, *args, **kwargs):
        """A call of the tensor expression `func` of the arguments, as a function of the module."""
        from .op import call_tir, call_tir_with_grad

        name = kwargs.pop("primfunc_name_hint", None)
        grad_name = kwargs.pop("te_grad_name", None)
        grad_kwargs = kwargs.pop("te_grad_kwargs", None)
        prim_func, tensors, out_sinfo, tir_vars = gen_call_tir_inputs(func, *args, **kwargs)
        var = self.add_func(prim_func, name or func.__name__)
        if grad_name is None:
            return call_tir(var, tensors, out_sinfo, tir_vars)
        return call_tir_with_grad(var, tensors, out_sinfo, grad_name, grad_kwargs, tir_vars)

    def call_te_with_grad(self, func, *args, te_grad_name, te_grad_kwargs=None, **kwargs):
        """call_te whose gradient is the registered `te_grad_name`."""
        return self.call_te(
            func, *args, te_grad_name=te_grad_name, te_grad_kwargs=te_grad_kwargs, **kwargs
        )

    def emit_te(self, func, *args, **kwargs):
        """emit(call_te(...))"""
        name_hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def emit_func_output(self, output, params=None):
        """Ends the open function, which returns `output`."""
        own = (scope for scope in reversed(_stack.functions) if scope._builder.same_as(self))
        scope = next(own, None)
        if scope is None:
            raise RuntimeError("emit_func_output: expected to be inside of a function")
        if scope.result is not None:
            raise RuntimeError(
                f"emit_func_output: expected one output of '{scope.name}', got another"
            )
        if params is not None and scope.params is not None:
            raise RuntimeError(
                f"emit_func_output: expected the parameters of '{scope.name}' once, got them again"
            )
        params = _params(params) if scope.params is None else scope.params
        if params is None:
            raise RuntimeError(
                f"emit_func_output: expected the parameters of '{scope.name}', got none"
            )
        if isinstance(output, (list, tuple)):
            output = Tuple(output)
        body = self._normalize_argument(convert_to_expr(output))
        blocks = self._end_sequence()
        attrs = scope.attrs if scope.private else {"global_symbol": scope.name, **scope.attrs}
        seq = _make_seq(SeqExpr([], body), blocks, body)
        func = Function(params, seq, None, scope.is_pure, attrs)
        scope.result = self.add_func(func, scope.name)
        if not scope.private and scope.result.name_hint != attrs["global_symbol"]:
            self.update_func(scope.result, func.with_attr("global_symbol", scope.result.name_hint))
        return scope.result
