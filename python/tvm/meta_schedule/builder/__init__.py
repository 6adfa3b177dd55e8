# SPDX-License-Identifier: Apache-2.0
"""Builders: programs to libraries."""

import os
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as _Timeout
from typing import Literal

import tvm_ffi

import tvm
from tvm import _derive

from ..logging import get_logger
from ..scratch import new_folder
from ..utils import Interface, cpu_count, get_global_func_with_default_on_worker, registered
from ..utils import create as _create

logger = get_logger(__name__)
T_BUILD = Callable[[tvm.IRModule, tvm.target.Target, dict | None], tvm_ffi.Module]
T_EXPORT = Callable[[tvm_ffi.Module], str]
_build_all = tvm_ffi.get_global_func("meta_schedule._build_all")

BuilderInput = _derive.node_class("meta_schedule.BuilderInput", __name__)
BuilderResult = _derive.node_class("meta_schedule.BuilderResult", __name__)


class Builder(Interface):
    """Turns modules into libraries: nothing in it is local, so that it may work anywhere."""

    @abstractmethod
    def build(self, build_inputs):
        """A BuilderResult for each BuilderInput."""
        raise NotImplementedError

    @staticmethod
    def create(kind="local", *args, **kwargs):
        """The builder of a kind: "local"."""
        return _create({"local": LocalBuilder}, kind, "builder", args, kwargs)


Builder.BuilderType = Builder | Literal["local"]
create = Builder.create


class PyBuilder(Builder):
    """Base of user-defined builders."""


class LocalBuilder(PyBuilder):
    """Compiles on threads of this process.

    With functions of the user (`f_build(mod, target, params) -> Module`,
    `f_export(Module) -> path`)
    these run on the threads instead; `initializer` runs once on each of them.

    Libraries lie in one folder per call of `build`, until the process ends (`remove_build_dir`
    removes one earlier).
    """

    def __init__(
        self, *, max_workers=None, timeout_sec=30.0, f_build=None, f_export=None, initializer=None
    ):
        self.max_workers = cpu_count() if max_workers is None else max_workers
        if self.max_workers < 1:
            raise ValueError(f"LocalBuilder: expected at least 1 worker, got {max_workers}")
        if not timeout_sec > 0:
            raise ValueError(f"LocalBuilder: expected a positive timeout_sec, got {timeout_sec}")
        self.timeout_sec = timeout_sec
        self.f_build, self.f_export, self.initializer = f_build, f_export, initializer

    def build(self, build_inputs):
        if self.f_build is None and self.f_export is None and self.initializer is None:
            folder = new_folder()
            return list(_build_all(build_inputs, folder, self.max_workers, self.timeout_sec))
        build = get_global_func_with_default_on_worker(self.f_build, default_build)
        export = get_global_func_with_default_on_worker(self.f_export, default_export)

        current = tvm.transform.PassContext.current()
        context = {name: getattr(current, name) for name in ("opt_level", "config")}

        def one(item):
            with tvm.transform.PassContext(**context):  # contexts belong to threads
                return str(export(build(item.mod, item.target, item.params)))

        pool = ThreadPoolExecutor(self.max_workers, initializer=self.initializer)
        try:
            futures = [pool.submit(one, item) for item in build_inputs]
            return [self._result(future) for future in futures]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _result(self, future):
        try:
            return BuilderResult(future.result(self.timeout_sec), None)
        except _Timeout:
            return BuilderResult(None, f"LocalBuilder: timed out after {self.timeout_sec} s")
        except Exception as error:
            return BuilderResult(None, f"LocalBuilder: {type(error).__name__}: {error}")


@registered("meta_schedule.builder.default_build")
def default_build(mod, target, _params):
    """Compiles a module for a target."""
    return tvm.tir.build(mod, target=target)


@registered("meta_schedule.builder.default_export")
def default_export(mod):
    """Writes a compiled module as a library into a new folder."""
    path = os.path.join(new_folder(), "lib.so")
    mod.export_library(path)
    return path


@registered("meta_schedule.builder.get_local_builder")
def get_local_builder():
    """A LocalBuilder with its defaults."""
    return LocalBuilder()
