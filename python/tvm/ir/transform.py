# SPDX-License-Identifier: Apache-2.0
"""Passes and their context."""

import functools
import inspect
import re

import tvm_ffi

from tvm._aliases import did_you_mean
from tvm._derive import Node, construct, function, register_node

_run, _enter, _exit, _current, _list_configs, _list_passes, _override = (
    function("transform." + name, __name__)
    for name in (
        "RunPass",
        "EnterPassContext",
        "ExitPassContext",
        "GetCurrentPassContext",
        "ListConfigs",
        "ListPasses",
        "OverrideInstruments",
    )
)


@register_node("transform.PassInfo")
class PassInfo(Node):
    names: set[str] = set()  # of passes made in Python

    def __init__(self, opt_level, name, required=None, traceable=False):
        construct(self, opt_level, name, required or [], traceable)
        self.names.add(name)


def _warn_of_misspelt(option, passes):
    """Of names that are like one of a pass: others may belong to passes made later."""
    import logging  # slow to import

    known = {*map(str, _list_passes()), *PassInfo.names}
    for name in passes:
        if name not in known and (hint := did_you_mean(name, known)):
            logging.getLogger("tvm.transform").warning(
                "PassContext: expected names of passes in %s, got '%s'%s", option, name, hint
            )


class _Options(dict):
    """The options of a pass, which are attributes as well."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"expected one of the options {', '.join(self)}, got '{name}'")


@register_node("transform.PassContext")
class PassContext(Node):
    """Options that hold while passes run: `with PassContext(opt_level=3, config={...}):`.

    Parameters
    ----------
    opt_level : passes of a higher level are left out.
    required_pass, disabled_pass : names of passes that run, or do not, whatever their level.
    instruments : objects that watch passes (tvm.instrument).
    config : {option: value}; `PassContext.list_configs()` says which there are.
    """

    def __init__(
        self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None
    ):
        config = {k: dict(v) if hasattr(v, "items") else v for k, v in (config or {}).items()}
        construct(
            self, opt_level, required_pass or [], disabled_pass or [], instruments or [], config
        )
        for option in ("required_pass", "disabled_pass"):
            if names := getattr(self, option):
                _warn_of_misspelt(option, map(str, names))

    def __enter__(self):
        _enter(self)
        return self

    def __exit__(self, ptype, value, trace):
        _exit(self)

    def override_instruments(self, instruments):
        """Replaces the instruments while the context is entered."""
        _override(self, instruments or [])

    @staticmethod
    def current():
        """The innermost context of this thread."""
        return _current()

    @staticmethod
    def list_configs():
        """{option: {"type", "default", "doc"}}"""
        return {str(k): dict(v.items()) for k, v in _list_configs().items()}


def _config(context, plain=PassContext.config):
    """{option: value}; the options of one pass are attributes, too."""
    options = plain.__get__(context).items()
    return {str(k): _Options(v.items()) if isinstance(v, tvm_ffi.Map) else v for k, v in options}


PassContext.config = property(_config)


@register_node("transform.Pass")
class Pass(Node):
    def __call__(self, mod):
        return _run(self, mod.obj if isinstance(mod, tvm_ffi.core.ObjectRValueRef) else mod)


@register_node("transform.ModulePass")
class ModulePass(Pass):
    pass


@register_node("transform.Sequential")
class Sequential(Pass):
    def __init__(self, passes=None, opt_level=0, name="sequential", required=None, traceable=False):
        construct(self, passes or [], PassInfo(opt_level, name, required or [], traceable))


def _pass_decorator(make, *methods):
    """module_pass and its kin: of a function or of a class with `transform_...`."""
    methods = methods or ("transform_module", "transform_function")

    def decorator(pass_func=None, opt_level=None, name=None, required=None, traceable=False):
        if opt_level is None:
            raise ValueError("expected opt_level for the pass, got none")

        def create(arg):
            info = PassInfo(opt_level, name or arg.__name__, required or [], traceable)
            if not inspect.isclass(arg):
                if not callable(arg):
                    raise TypeError(f"expected a function or a class, got {type(arg).__name__}")
                return make(arg, info)

            @functools.wraps(arg, updated=())
            def create_from_class(*args, **kwargs):
                instance = arg(*args, **kwargs)
                method = next((getattr(instance, m) for m in methods if hasattr(instance, m)), None)
                if method is None:
                    raise TypeError(f"{arg.__name__}: expected a method {' or '.join(methods)}")
                return make(method, info)

            return create_from_class

        return create(pass_func) if pass_func is not None else create

    return decorator


def _make_module_pass(func, info):
    return ModulePass(tvm_ffi.convert(lambda mod, ctx: func(mod, ctx)), info)


module_pass = _pass_decorator(_make_module_pass)
module_pass.__doc__ = "Makes a pass of a function (module, context) -> module or of a class."


def PrintIR(header=""):
    """Prints the module and returns it unchanged."""

    @module_pass(opt_level=0, name="PrintIR")
    def print_ir(mod, ctx):
        if header:
            print(header)
        print(mod)
        return mod

    return print_ir


def ApplyPassToFunction(transform, func_name_regex, error_if_no_function_matches_regex=False):
    """Runs a pass on the functions whose whole name matches."""
    pattern = re.compile(func_name_regex)

    @module_pass(opt_level=0, name="ApplyPassToFunction")
    def apply(mod, ctx):
        from tvm.ir import IRModule

        matched = {v: f for v, f in mod.functions_items() if pattern.fullmatch(v.name_hint)}
        if not matched and error_if_no_function_matches_regex:
            names = [v.name_hint for v in mod.get_global_vars()]
            raise ValueError(
                "ApplyPassToFunction: expected a function that matches "
                f"'{func_name_regex}', got {names}"
            )
        changed = transform(IRModule(matched, mod.attrs, mod.global_infos))
        result = mod.clone()
        for var in matched:
            del result[var]
        result.update(changed)
        return result

    return apply
