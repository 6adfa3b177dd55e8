# SPDX-License-Identifier: Apache-2.0
"""Tags that all operations made in a scope carry."""

import functools
import threading

_local = threading.local()


class TagScope:
    """`with tag_scope("conv2d"):`, or a decorator; scopes do not nest."""

    @classmethod
    def get_current(cls):
        """The scope this thread is in, or None."""
        return getattr(_local, "scope", None)

    def __init__(self, tag):
        self.tag = tag

    def __enter__(self):
        current = TagScope.get_current()
        if current is not None:
            raise ValueError(
                f"tag_scope: expected no scope inside another, got '{self.tag}' in '{current.tag}'"
            )
        _local.scope = self
        return self

    def __exit__(self, ptype, value, trace):
        _local.scope = None

    def __call__(self, fdecl):
        @functools.wraps(fdecl)
        def tagged(*args, **kwargs):
            with self:
                return fdecl(*args, **kwargs)

        return tagged


def tag_scope(tag):
    """A scope in which operations get `tag`."""
    return TagScope(tag)
