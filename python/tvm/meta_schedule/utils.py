# SPDX-License-Identifier: Apache-2.0
"""What the parts of the tuner share: classes defined by users, seeds, counting cores."""

import contextlib
import functools
import inspect
import os
import random

import tvm_ffi
from tvm_ffi import core

from tvm import _derive

from .scratch import remove_folder_of


def registered(name):
    """Decorator that makes a function known to C++ by a name and leaves it what it is: callable
    with keywords, with a signature, and able to cross to another process."""

    def register(function):
        tvm_ffi.register_global_func(name, function, override=True)
        return function

    return register


class Interface:
    """Base of the parts that are written in Python; they print as the ones in C++ do."""

    def __repr__(self):
        return f"meta_schedule.{type(self).__name__}({hex(id(self))})"


class UserDefined:
    """Base of the `Py…` bases of parts that C++ calls. Each has the type key of the node that
    stands for a user's object, and the methods that reach it: abstract ones must be defined."""

    _key = None

    def clone(self):
        """An object of its own with the same options."""
        raise NotImplementedError

    def _initialize_with_tune_context(self, context):
        """Is told what the object is used for, before anything else."""
        raise NotImplementedError


def _abstract(cls):
    return [n for n in dir(cls) if getattr(getattr(cls, n), "__isabstractmethod__", False)]


def _missing(owner, name):
    """A method that nobody defined: it fails when it is called, not before."""

    def method(self, *args, **kwargs):
        raise NotImplementedError(f"{owner}: expected the method {name} to be defined")

    method.__name__ = name
    return method


def stand_for(node, instance, without=()):
    """Constructs the node that stands for a user's object, with those of its methods that C++ may
    call."""
    py_base = next(c for c in type(instance).__mro__ if "_key" in vars(c))
    own = lambda name: getattr(type(instance), name) is not getattr(py_base, name)
    methods = {
        name: tvm_ffi.convert(getattr(instance, name))
        for cls in (py_base, UserDefined)
        for name, value in vars(cls).items()
        if inspect.isfunction(value) and own(name) and name not in without
    }
    index = type(node).__tvm_ffi_type_info__.type_index
    init = core._lookup_type_attr(index, "__ffi_init__")
    node.__init_handle_by_constructor__(init, type(instance).__name__, instance, methods)


def derived_object(cls):
    """Class decorator for a user-defined part: a subclass of one of the `Py…` bases becomes a class
    whose objects the tuner takes where it takes its own.

    Parts that C++ calls (schedule rules, postprocessors, mutators, search strategies, space
    generators, databases) are wrapped: the object is a node, and methods called on it reach the
    Python instance.
    """
    if not issubclass(cls, Interface | UserDefined):
        decorated = [b.__name__ for b in cls.__mro__[1:] if hasattr(b, "_user_class")]
        expected = (
            "a base that is not decorated itself"
            if decorated
            else "a subclass of PyBuilder, PyRunner, PyCostModel, PyScheduleRule, …"
        )
        got = f"{cls.__name__}({decorated[0]})" if decorated else cls.__name__
        raise TypeError(f"derived_object: expected {expected}, got {got}")
    for name in _abstract(cls):
        setattr(cls, name, _missing(cls.__name__, name))
    if issubclass(cls, Interface):
        return cls
    base = _derive.node_class(cls._key, "tvm.meta_schedule")

    def __init__(self, *args, **kwargs):
        stand_for(self, cls(*args, **kwargs))

    derived = type(base)(
        cls.__name__,
        (base,),
        {
            "__slots__": (),
            "__init__": __init__,
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
            "_complete": True,
            "_user_class": cls,
        },
    )
    functools.update_wrapper(derived, cls, updated=())
    return derived


def forward_attributes(base):
    """For the node class behind user-defined parts: what it does not have is the instance's."""

    def __repr__(self):
        own = type(self._inst)
        if own.__repr__ is not object.__repr__:
            return repr(self._inst)
        if own.__str__ is not object.__str__:
            return str(self._inst)
        return f"meta_schedule.{self._name}({hex(self.__chandle__())})"

    def __getattr__(self, name):
        if name[:2] == "__" or name == "_inst":
            raise AttributeError(name)
        return getattr(self._inst, name)

    base.__getattr__, base.__repr__ = __getattr__, __repr__
    base.__setattr__ = lambda self, name, value: setattr(self._inst, name, value)
    return base


def cpu_count(logical=True):
    """The CPUs this process may use: hardware threads, or whole cores."""
    usable = tvm_ffi.get_global_func("runtime.available_cpus")()
    return usable if logical else max(1, min(usable, _physical(os.sched_getaffinity(0))))


def _physical(cpus):
    cores = set()
    for cpu in cpus:
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path) as file:
                cores.add(file.read().strip())
        except OSError:
            return len(cpus)
    return len(cores)


def num_cores(spec, what="num_tuning_cores"):
    """How many threads "physical", "logical" or a number means."""
    if spec in ("physical", "logical"):
        return cpu_count(spec == "logical")
    if isinstance(spec, int) and not isinstance(spec, bool) and spec > 0:
        return spec
    raise ValueError(f"{what}: expected 'physical', 'logical' or a positive number, got {spec!r}")


def fork_seed(seed, n):
    """`n` seeds that follow from one; random ones from None or -1."""
    if seed is not None and not isinstance(seed, int):
        raise TypeError(f"seed: expected a number or None, got {seed!r}")
    rng = random.Random(None if seed in (None, -1) else seed)
    return [rng.randrange(1, 2**31 - 1) for _ in range(n)]


def shash2hex(mod):
    """The structural hash of a module as 16 hexadecimal digits."""
    from tvm import ir

    return f"{ir.structural_hash(mod) & (2**64 - 1):016x}"


@registered("meta_schedule.remove_build_dir")
def remove_build_dir(artifact_path):
    """Removes the folder that a built library lies in, if the tuner made it."""
    remove_folder_of(artifact_path)


@contextlib.contextmanager
def written_whole(path, mode="w"):
    """A file to write that takes the place of `path` when it is complete: a full disk, or a kill,
    leaves what was there before."""
    partial = f"{path}.{os.getpid()}"
    try:
        with open(partial, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def get_global_func_with_default_on_worker(name, default):
    """A function given as itself, by its registered name, or None for the default."""
    if name is None:
        return default
    if callable(name):
        return name
    found = tvm_ffi.get_global_func(name, allow_missing=True)
    if found is None:
        raise ValueError(f"expected the name of a registered function, got '{name}'")
    return found


def get_global_func_on_rpc_session(session, name, extra_error_msg=None):
    """A function that is registered on a remote device."""
    function = session.get_function(name)
    if function is None:
        hint = "" if extra_error_msg is None else f"; {extra_error_msg}"
        raise AttributeError(f"expected the remote device to have the function '{name}'{hint}")
    return function


@registered("meta_schedule.print_interactive_table")
def print_interactive_table(data):
    """Prints a table of the progress."""
    print(data, flush=True)


def create(kinds, kind, what, args, kwargs):
    """The object of a kind given by name; ValueError with the names there are."""
    from tvm._aliases import did_you_mean

    make = kinds.get(kind) if isinstance(kind, str) else None
    if make is None:
        names = ", ".join(f"'{k}'" for k in kinds)
        hint = did_you_mean(kind, kinds) if isinstance(kind, str) else ""
        raise ValueError(f"{what}: expected one of {names}, got {kind!r}{hint}")
    return make(*args, **kwargs)


def takes_options_of(inner):
    """Decorates a function whose **options go on to `inner`: its signature names them, and one that
    `inner` does not have is a TypeError before anything was done."""

    def decorate(function):
        own = inspect.signature(function)
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        optional = [
            p
            for p in inspect.signature(inner).parameters.values()
            if p.default is not p.empty and p.name not in own.parameters
        ]
        shown = own.replace(parameters=[*named, *optional])

        @functools.wraps(function)
        def checked(*args, **kwargs):
            try:
                shown.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}: {error}") from None
            return function(*args, **kwargs)

        checked.__signature__ = shown
        return checked

    return decorate
