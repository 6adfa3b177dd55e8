# SPDX-License-Identifier: Apache-2.0
"""Running the tools of others: finding them, and errors that hold what they said."""

import contextlib
import os
import shlex
import shutil
import subprocess

import tvm_ffi


def register(name):
    """Registers a global function, unless the user has put another one in its place before."""

    def decorate(function):
        if tvm_ffi.get_global_func(name, allow_missing=True) is None:
            tvm_ffi.register_global_func(name, function)
        return function

    return decorate


def words(value):
    """A list of arguments out of None, one argument or several."""
    if value is None:
        return []
    return [os.fspath(value)] if isinstance(value, str | os.PathLike) else [*map(os.fspath, value)]


def command_of(tool):
    """The words of a command: a program, or a program with arguments such as `ccache g++`."""
    return [tool] if shutil.which(tool) else shlex.split(tool)


def find(candidates, extra_folders=()):
    """The full paths of those programs that exist, in the order of the names."""
    path = os.pathsep.join([*map(str, extra_folders), os.environ.get("PATH", os.defpath)])
    found = (shutil.which(name, path=path) for name in candidates)
    return list(dict.fromkeys(filter(None, found)))


def run(command, what, *, cwd=None, env=None, install="", merge=False):
    """Runs a command and returns its output (`merge`: and errors); RuntimeError says all of it.

    `what` is what fails without it ("link x.so"); `install` what to do when it does not exist.
    """
    command = [os.fspath(word) for word in command]
    shown = shlex.join(command)
    env = {**os.environ, **env} if env else None
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError) and error.filename != cwd
        hint = f"; {install}" if missing and install else ""
        raise RuntimeError(
            f"cannot {what}: {shown}: {error.strerror}: {error.filename}{hint}"
        ) from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        ended = f"status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise RuntimeError(f"cannot {what}: `{shown}` ended with {ended}:\n{said}")
    return (done.stdout + (done.stderr if merge else b"")).decode(errors="replace")


@contextlib.contextmanager
def replacing(output):
    """A path beside `output` that takes its place when all went well, and vanishes otherwise."""
    folder, name = os.path.split(os.fspath(output))
    if not os.path.isdir(folder or "."):
        raise FileNotFoundError(f"{output}: the folder does not exist")
    stem, suffix = os.path.splitext(name)
    partial = os.path.join(folder, f".{stem}.{os.getpid()}{suffix}")
    try:
        yield partial
        os.replace(partial, output)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
