# SPDX-License-Identifier: Apache-2.0
"""Temporary folders, locks between processes, and small questions about paths."""

import atexit
import contextlib
import datetime
import itertools
import logging
import os
import pathlib
import shutil
import tempfile
import weakref

try:
    import fcntl
except ImportError:  # not on this system: FileLock says so
    fcntl = None

SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".cu")


class DirectoryCreatedPastAtExit(Exception):
    """A TempDirectory was asked for when the program's exit had already removed all of them."""


class TempDirectory:
    """A folder that disappears with this object, at the latest with the program.

    `custom_path` names the folder, which must not exist yet. With `keep_for_debug` it stays; None
    is what `set_keep_for_debug` says.
    """

    TEMPDIRS = set()  # of paths that the exit removes
    _keep = False
    _past_exit = False
    _kept_parent = None
    _kept_numbers = itertools.count()

    @classmethod
    def remove_tempdirs(cls):
        """Removes all that are left; none can be created any more."""
        cls._past_exit = True
        while cls.TEMPDIRS:
            shutil.rmtree(cls.TEMPDIRS.pop(), ignore_errors=True)

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to=True):
        """Folders created in this context stay after the program, in one folder, numbered."""
        before, cls._keep = cls._keep, set_to
        try:
            yield
        finally:
            cls._keep = before

    def __init__(self, custom_path=None, keep_for_debug=None):
        if TempDirectory._past_exit:
            raise DirectoryCreatedPastAtExit("TempDirectory: the program has run its exit handlers")
        self._kept = self._keep if keep_for_debug is None else keep_for_debug
        self._owner = os.getpid()
        if custom_path is not None:
            os.mkdir(custom_path)
            # Another folder may have the name once the program has gone elsewhere.
            self.temp_dir = os.path.abspath(custom_path)
        elif self._kept:
            self.temp_dir = self._kept_directory()
        else:
            self.temp_dir = tempfile.mkdtemp(prefix="tvm-")
        if not self._kept:
            self.TEMPDIRS.add(self.temp_dir)

    @classmethod
    def _kept_directory(cls):
        if cls._kept_parent is None:
            now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
            cls._kept_parent = tempfile.mkdtemp(prefix=f"tvm-debug-{now}-")
            logging.getLogger(__name__).warning("temporary folders stay in %s", cls._kept_parent)
        path = os.path.join(cls._kept_parent, f"{next(cls._kept_numbers):05d}")
        os.mkdir(path)
        return path

    def remove(self):
        """Removes the folder now, unless it is to be kept."""
        path, self.temp_dir = self.temp_dir, None
        # In a fork it is still the parent's.
        if path is not None and not self._kept and self._owner == os.getpid():
            shutil.rmtree(path, ignore_errors=True)
            self.TEMPDIRS.discard(path)

    @property
    def path(self):
        return pathlib.Path(self.temp_dir)

    def __truediv__(self, other):
        return self.path / other

    def __enter__(self):
        return self

    def __exit__(self, ptype, value, trace):
        self.remove()

    def __del__(self):
        if getattr(self, "temp_dir", None) is not None:
            self.remove()

    def relpath(self, name):
        """The path of `name` in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self):
        """The names in the folder."""
        return os.listdir(self.temp_dir)


atexit.register(TempDirectory.remove_tempdirs)


def _forget_tempdirs():
    TempDirectory.TEMPDIRS.clear()
    TempDirectory._kept_parent = None


os.register_at_fork(after_in_child=_forget_tempdirs)


def tempdir(custom_path=None, keep_for_debug=None):
    """As TempDirectory."""
    return TempDirectory(custom_path, keep_for_debug)


class FileLock:
    """Holds a lock on a file, which is created if need be, until `release`.

    It excludes other processes and other locks of this one, and ends with the process, whatever
    way that ends. The file stays: removing it would let two others lock two files of one name.
    """

    _held = weakref.WeakSet()

    def __init__(self, path):
        if fcntl is None:
            raise RuntimeError("FileLock: this system has no file locks (fcntl)")
        self.lock_file = open(path, "ab")  # not "w": the content is not ours
        try:
            fcntl.flock(self.lock_file, fcntl.LOCK_EX)
        except BaseException:
            self.lock_file.close()
            raise
        self._held.add(self)

    def release(self):
        """Releases the lock."""
        self.lock_file.close()

    def __enter__(self):
        return self

    def __exit__(self, ptype, value, trace):
        self.release()

    @classmethod
    def _drop_in_fork(cls):
        """A fork would hold the lock on when the holder is gone."""
        for lock in list(cls._held):
            lock.release()


os.register_at_fork(after_in_child=FileLock._drop_in_fork)


def filelock(path):
    """As FileLock."""
    return FileLock(path)


def is_source_path(path):
    """Whether the name is that of a source file of C, C++ or CUDA."""
    return os.path.splitext(os.fspath(path))[1] in SOURCE_SUFFIXES


def which(exec_name):
    """The full path of a program, or None."""
    return shutil.which(exec_name)
