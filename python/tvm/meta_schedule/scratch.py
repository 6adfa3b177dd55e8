# SPDX-License-Identifier: Apache-2.0
"""Folders for the libraries of candidates, for the moment between linking and running: in memory
where the system has a place for it.

They lie below one folder per process, which holds a lock on a file in there as long as it lives.
It removes the folder when it ends; if it was killed, the next process finds the lock free.
Nothing else is ever removed: a library that lies elsewhere belongs to whoever put it there.
"""

import atexit
import fcntl
import functools
import os
import shutil
import tempfile

_PREFIX = "tvm-tune-"
_MARK = "The folder is removed when its process has ended.\n"  # in the lock of a folder of ours


def _place():
    shm = "/dev/shm"
    enough = os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 64 << 20
    return shm if enough else tempfile.gettempdir()


def _sweep(place):
    """Removes what killed processes left."""
    for name in os.listdir(place):
        folder = os.path.join(place, name)
        if not name.startswith(_PREFIX):
            continue
        try:
            with open(os.path.join(folder, "lock")) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if file.read(len(_MARK) + 1) == _MARK:
                    shutil.rmtree(folder, ignore_errors=True)
        except (OSError, UnicodeDecodeError):  # in use, or somebody else's
            pass


@functools.cache
def _root(_process):
    place = _place()
    _sweep(place)
    root = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    fresh = os.path.join(root, "fresh")
    lock = open(fresh, "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    print(_MARK, end="", file=lock, flush=True)
    os.rename(fresh, os.path.join(root, "lock"))  # which appears locked
    atexit.register(_remove, root, os.getpid())
    return root, lock


def _remove(root, owner):
    if os.getpid() == owner:  # a forked child ends too
        shutil.rmtree(root, ignore_errors=True)


def new_folder():
    """An empty folder of its own."""
    root, _ = _root(os.getpid())
    os.makedirs(root, exist_ok=True)
    return tempfile.mkdtemp(dir=root)


def remove_folder_of(path):
    """Removes the folder that a file lies in, if `new_folder` made it."""
    folder = os.path.dirname(os.path.abspath(path))
    if _root.cache_info().currsize and os.path.dirname(folder) == _root(os.getpid())[0]:
        shutil.rmtree(folder, ignore_errors=True)
