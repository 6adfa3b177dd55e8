# SPDX-License-Identifier: Apache-2.0
"""Exception classes, and which of them keep their type when they cross into C++ and back."""

import ast
import builtins

from tvm_ffi import core, register_error, register_global_func


@register_error
class TVMError(RuntimeError):
    """Base of the errors that fit no built-in class."""


@register_error
class InternalError(TVMError):
    """A broken invariant inside the library: please report it."""


@register_error
class RPCError(TVMError):
    """The remote side failed."""


@register_error
class RPCSessionTimeoutError(RPCError, TimeoutError):
    """The remote side did not answer in time."""


@register_error
class OpError(TVMError):
    """Base of the errors about one operator."""


@register_error
class OpNotImplemented(OpError, NotImplementedError):
    """The operator is not implemented."""


@register_error
class OpAttributeRequired(OpError, AttributeError):
    """An attribute of the operator is missing."""


@register_error
class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of the operator has a value that is not allowed."""


@register_error
class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of the operator has a value that is not supported."""


@register_error
class OpValueError(OpError, ValueError):
    """The values of a call's arguments do not fit: shapes, axes, counts."""


@register_error
class OpTypeError(OpError, TypeError):
    """An argument of a call is of the wrong kind or dtype."""


@register_error
class DiagnosticError(TVMError):
    """Diagnostics of level error were reported."""


@register_error
class ScheduleError(TVMError, ValueError):
    """A schedule primitive cannot be applied."""


class _KeyErrorFromText:
    """KeyError quotes its message in str(); a message that crossed as text must not be quoted
    twice."""

    def __new__(cls, message):
        try:
            return KeyError(ast.literal_eval(message))
        except (SyntaxError, ValueError):
            return KeyError(message)


class _SystemExitFromText:
    """The exit code crosses as text."""

    def __new__(cls, message):
        if message in ("None", ""):
            return SystemExit()
        return SystemExit(int(message) if message.lstrip("-").isdigit() else message)


def _from_message(cls):
    """For a class whose constructor wants more than a message: a subclass that is content with
    one."""
    group = hasattr(cls, "exceptions")

    def new(kind, message):
        if group:
            return cls.__new__(kind, message, [RuntimeError(message)])
        return BaseException.__new__(kind, message)

    def init(self, message):
        self.args = (message,)

    body = {"__new__": new, "__init__": init, "__str__": lambda self: self.args[0]}
    return type(cls.__name__, (cls,), body)


def _takes_message(cls):
    try:
        return str(cls("message")) == "message"
    except TypeError:
        return False


def _register_builtins():
    special = {KeyError: _KeyErrorFromText, SystemExit: _SystemExitFromText}
    for name, cls in vars(builtins).items():
        if isinstance(cls, type) and issubclass(cls, BaseException) and cls.__name__ == name:
            core.ERROR_TYPE_TO_NAME[cls] = name
            make = special.get(cls) or (cls if _takes_message(cls) else _from_message(cls))
            core.ERROR_NAME_TO_TYPE[name] = make


@register_global_func("runtime.run_signal_handlers")
def _run_signal_handlers():
    """Long C++ calls come here now and then: entering Python code runs the handlers of signals that
    came, so that Ctrl-C stops the call with KeyboardInterrupt."""


@register_global_func("ir.warn")
def _warn(part, message):
    import logging  # rarely, and slow to import

    logging.getLogger(f"tvm.{part}").warning("%s", message)


_register_builtins()
register_error("TVMError", TVMError)
