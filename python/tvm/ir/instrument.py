# SPDX-License-Identifier: Apache-2.0
"""Instruments: what watches passes while they run."""

import inspect
import re
import time
from pathlib import Path

import tvm_ffi

from tvm._derive import Node, register_node

_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


@register_node("instrument.PassInstrument")
class PassInstrument(Node):
    """Base of instruments: a subclass defines any of enter_pass_ctx, exit_pass_ctx, should_run,
    run_before_pass, run_after_pass."""

    __slots__ = ("__dict__",)

    def __init__(self):
        def callback(name):
            own = getattr(type(self), name, None)
            if own is None:
                return None
            method = getattr(self, name)
            return tvm_ffi.convert(lambda *args: method(*args))

        init = tvm_ffi.core._lookup_type_attr(
            PassInstrument.__tvm_ffi_type_info__.type_index, "__ffi_init__"
        )
        callbacks = [callback(name) for name in _METHODS]
        self.__init_handle_by_constructor__(init, type(self).__name__, *callbacks)


def pass_instrument(pi_cls=None):
    """Class decorator: makes an instrument of a class with any of the callback methods."""

    def create(cls):
        if not inspect.isclass(cls):
            raise TypeError(f"pass_instrument: expected a class, got {type(cls).__name__}")

        class Wrapped(cls, PassInstrument):
            def __init__(self, *args, **kwargs):
                PassInstrument.__init__(self)
                if cls.__init__ is not object.__init__:
                    cls.__init__(self, *args, **kwargs)

        Wrapped.__name__ = Wrapped.__qualname__ = cls.__name__
        Wrapped.__doc__, Wrapped.__module__ = cls.__doc__, cls.__module__
        return Wrapped

    return create(pi_cls) if pi_cls is not None else create


_timings = []


class PassTimingInstrument(PassInstrument):
    """Measures passes; `render()` gives a table of the last context."""

    def enter_pass_ctx(self):
        _timings.clear()
        self._stack = []

    def run_before_pass(self, mod, info):
        _timings.append([len(self._stack), str(info.name), time.perf_counter()])
        self._stack.append(len(_timings) - 1)

    def run_after_pass(self, mod, info):
        row = _timings[self._stack.pop()]
        row[2] = time.perf_counter() - row[2]

    @staticmethod
    def render():
        """The measured passes with their milliseconds; nested passes are indented."""
        if not _timings:
            return ""
        width = max(len(name) + 2 * depth for depth, name, _ in _timings) + 2
        total = sum(seconds for depth, _, seconds in _timings if depth == 0)
        rows = [f"{'pass':<{width}}{'ms':>10}{'%':>7}"]
        for depth, name, seconds in _timings:
            share = 100 * seconds / total if total else 0.0
            rows.append(f"{'  ' * depth + name:<{width}}{seconds * 1e3:>10.3f}{share:>7.1f}")
        return "\n".join(rows) + "\n"


@pass_instrument
class PassPrintingInstrument:
    """Prints the module before and after the passes named."""

    def __init__(self, print_before_pass_names, print_after_pass_names):
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod, info):
        if info.name in self.before:
            print(f"Before {info.name}:\n{mod}\n")

    def run_after_pass(self, mod, info):
        if info.name in self.after:
            print(f"After {info.name}:\n{mod}\n")


@pass_instrument
class PrintBeforeAll:
    """Prints the module before every pass."""

    def run_before_pass(self, mod, info):
        print(f"Before {info.name}:\n{mod}\n")


@pass_instrument
class PrintAfterAll:
    """Prints the module after every pass."""

    def run_after_pass(self, mod, info):
        print(f"After {info.name}:\n{mod}\n")


@pass_instrument
class DumpIR:
    """Writes the module after every pass to a numbered file in a folder.

    With `refresh` the files that an earlier one wrote there are removed, and no others.
    """

    _FIRST_LINE = "# after pass "

    def __init__(self, dump_dir, refresh=False):
        self.dir, self.count = Path(dump_dir), 0
        self.dir.mkdir(parents=True, exist_ok=True)
        if refresh:
            for old in self.dir.glob("[0-9][0-9][0-9]*_*.py"):
                with old.open("rb") as file:
                    written_by_us = file.read(len(self._FIRST_LINE)) == self._FIRST_LINE.encode()
                if written_by_us:
                    old.unlink()

    def run_after_pass(self, mod, info):
        name = re.sub(r"[^A-Za-z0-9_.]", "_", str(info.name))
        text = f"{self._FIRST_LINE}{info.name}\n{mod}\n"
        (self.dir / f"{self.count:03d}_{name}.py").write_text(text)
        self.count += 1


@pass_instrument
class VerifyAfterAll:
    """Checks after every pass that the functions are well formed."""

    def run_after_pass(self, mod, info):
        from tvm import tir

        for var, func in mod.functions_items():
            if isinstance(func, tir.PrimFunc):
                try:
                    tir.analysis.verify_well_formed(func, True)
                except Exception as error:
                    raise ValueError(f"after {info.name}: {var.name_hint}: {error}") from error
