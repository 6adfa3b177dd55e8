# SPDX-License-Identifier: Apache-2.0
"""Parameters of tests: targets, values, cached fixtures, programs before and after a pass."""

import copy
import functools
import inspect
import os
import sys

import tvm

from .features import device_enabled
from .utils import SKIP_SLOW_TESTS

DEFAULT_TEST_TARGETS = [
    "llvm",
    "c",
    "cuda",
    "nvptx",
    "vulkan",
    "opencl",
    "metal",
    "rocm",
    "hexagon",
]


def enabled_targets():
    """[(target, device)] that run here, of TVM_TEST_TARGETS (separated by ;) or the usual ones."""
    wanted = os.environ.get("TVM_TEST_TARGETS", "")
    targets = [t for t in wanted.split(";") if t] or DEFAULT_TEST_TARGETS
    return [(t, tvm.device(t.split()[0])) for t in targets if device_enabled(t)]


def _pytest():
    import pytest

    return pytest


def slow(func):
    """Marks a test that SKIP_SLOW_TESTS=1 leaves out."""
    return _pytest().mark.skipif(SKIP_SLOW_TESTS, reason="SKIP_SLOW_TESTS is set")(func)


def _target_params(targets):
    params = []
    for target in targets:
        skip = _pytest().mark.skipif(
            not device_enabled(target), reason=f"{target} does not run here"
        )
        params.append(_pytest().param(target, tvm.device(target.split()[0]), marks=skip, id=target))
    return params


def parametrize_targets(*args):
    """`@parametrize_targets("llvm") def test(target, dev)`: once for each target that runs here."""

    def decorate(func, targets):
        names = [n for n in ("target", "dev") if n in inspect.signature(func).parameters]
        if not names:
            raise TypeError(f"parametrize_targets: expected {func.__name__} to take target or dev")
        params = _target_params(targets)
        if len(names) == 1:
            keep = 0 if names == ["target"] else 1
            params = [_pytest().param(p.values[keep], marks=p.marks, id=p.id) for p in params]
        return _pytest().mark.parametrize(",".join(names), params)(func)

    if len(args) == 1 and callable(args[0]):
        return decorate(args[0], DEFAULT_TEST_TARGETS)
    return lambda func: decorate(func, args)


def exclude_targets(*args):
    """The usual targets without some."""
    kept = [t for t in DEFAULT_TEST_TARGETS if t.split()[0] not in args and t not in args]
    return parametrize_targets(*kept)


def parameter(*values, ids=None, by_dict=None):
    """`n = tvm.testing.parameter(1, 2)` in a module or class: tests with `n` run for each value."""
    if by_dict is not None:
        if values or ids:
            raise TypeError("parameter: expected values or by_dict, got both")
        ids, values = zip(*by_dict.items(), strict=True)

    @_pytest().fixture(params=values, ids=ids)
    def as_fixture(*_cls, request):
        return request.param

    return as_fixture


def parameters(*value_sets, ids=None):
    """`a, b = tvm.testing.parameters((1, 2), (3, 4))`: values that belong together."""
    # One fixture, put into the caller's module, holds the set; one for each position its part.
    caller = sys._getframe(1).f_globals
    name = f"_parameters_{sum(key.startswith('_parameters_') for key in caller)}"
    caller[name] = parameter(*value_sets, ids=ids)

    def part(i):
        def as_fixture(**kwargs):
            return kwargs[name][i]

        shared = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        as_fixture.__signature__ = inspect.Signature([shared])
        return _pytest().fixture(as_fixture)

    return tuple(part(i) for i in range(len(value_sets[0])))


def fixture(func=None, *, cache_return_value=False):
    """A pytest fixture; with cache_return_value it is computed once per parameters and copied."""

    def decorate(func):
        if not cache_return_value:
            return _pytest().fixture(func)
        cache = {}

        @functools.wraps(func)
        def cached(*args, **kwargs):
            key = repr((args, sorted(kwargs.items())))
            if key not in cache:
                cache[key] = func(*args, **kwargs)
            return copy.deepcopy(cache[key])

        return _pytest().fixture(cached)

    return decorate if func is None else decorate(func)


def _mark_parameterizations(make_mark):
    def with_params(*params, reason):
        def decorate(func):
            @functools.wraps(func)
            def wrapper(*args, **kwargs):
                request = kwargs.pop("request")
                callspec = getattr(request.node, "callspec", None)
                if callspec is not None and callspec.id in params:
                    make_mark(reason)
                return func(*args, **kwargs)

            signature = inspect.signature(func)
            request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)
            wrapper.__signature__ = signature.replace(
                parameters=[*signature.parameters.values(), request]
            )
            return wrapper

        return decorate

    return with_params


skip_parameterizations = _mark_parameterizations(lambda reason: _pytest().skip(reason))
xfail_parameterizations = _mark_parameterizations(lambda reason: _pytest().xfail(reason))


def known_failing_targets(*args):
    """Expects a test over targets to fail on some."""

    def decorate(func):
        @functools.wraps(func)
        def wrapper(*a, **kwargs):
            target = str(kwargs.get("target", ""))
            if target.split()[0] in args:
                _pytest().xfail(f"known to fail on {target}")
            return func(*a, **kwargs)

        return wrapper

    return decorate


class CompareBeforeAfter:
    """Base of pass tests: a subclass has `transform` (a pass, a method that gives one, a fixture),
    `before` and `expected`: a function, a module, a class of a module, a method written in
    TVMScript or one that returns a program (its parameters are fixtures), a fixture, or an
    exception class."""

    check_well_formed = True

    def __init_subclass__(cls):
        for name in ("before", "expected", "transform"):
            if name in vars(cls):
                setattr(cls, name, cls._as_fixture(name, vars(cls)[name]))

    @classmethod
    def _as_fixture(cls, name, value):
        """A fixture that gives the program or the pass, whatever it was written as."""
        if "fixture" in type(value).__name__.lower() or hasattr(value, "_pytestfixturefunction"):
            return value
        if name != "transform" and inspect.isfunction(value) and _is_script(value):
            from tvm.script import tir as T

            value = T.prim_func(check_well_formed=cls.check_well_formed)(value)
        elif name != "transform" and inspect.isclass(value):
            if not issubclass(value, BaseException):
                from tvm.script import ir as I

                value = I.ir_module(check_well_formed=cls.check_well_formed)(value)
        elif inspect.isfunction(value):
            return _pytest().fixture(value)
        return _pytest().fixture(lambda self: value)

    def test_compare(self, before, expected, transform):
        """`transform` makes `expected` of `before`, whatever the functions are called."""
        if inspect.isclass(expected) and issubclass(expected, BaseException):
            with _pytest().raises(expected):
                transform(_module(before))
            return
        tvm.ir.assert_structural_equal(
            _unnamed(transform(_module(before))), _unnamed(_module(expected))
        )


def _is_script(function):
    """Whether a method is a program: its parameters are annotated, and there is no `self`."""
    names = list(inspect.signature(function).parameters)
    return names[:1] != ["self"]


def _module(program):
    if isinstance(program, tvm.tir.PrimFunc):
        return tvm.IRModule({"main": program})
    return program


def _unnamed(module):
    """The module with functions that do not say what they are called outside."""
    if not isinstance(module, tvm.IRModule):
        return module
    functions = {
        var: func.without_attr("global_symbol") if func.attrs is not None else func
        for var, func in module.functions.items()
    }
    return tvm.IRModule(functions, attrs=module.attrs)


__all__ = [
    "CompareBeforeAfter",
    "DEFAULT_TEST_TARGETS",
    "enabled_targets",
    "exclude_targets",
    "fixture",
    "known_failing_targets",
    "parameter",
    "parameters",
    "parametrize_targets",
    "skip_parameterizations",
    "slow",
    "xfail_parameterizations",
]
