# SPDX-License-Identifier: Apache-2.0
"""Folders for the libraries of candidates, for the moment between linking and running: in memory
where the system has a place for it.

They lie below one folder per process, which holds a lock on a file in there as long as it lives.
It removes the folder when it ends; if it was killed, the next process finds the lock free.
"""

import atexit
import fcntl
import functools
import os
import shutil
import tempfile

_PREFIX = "tvm-tune-"


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
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, or somebody else's
            pass


@functools.cache
def _root(_process):
    place = _place()
    _sweep(place)
    root = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    fresh = os.path.join(root, "fresh")
    lock = open(fresh, "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
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
