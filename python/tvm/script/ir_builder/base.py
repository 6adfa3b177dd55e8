# SPDX-License-Identifier: Apache-2.0
"""The builder and its stack of frames."""

import threading

import tvm_ffi

_state = threading.local()
_set_name = tvm_ffi.get_global_func("script._set_name")
_set_span = tvm_ffi.get_global_func("script._set_span")


class IRBuilderFrame:
    """A part of the program being built; leaving it adds what it holds to the frame outside."""

    def __init__(self):
        self._callbacks = []

    def __enter__(self):
        builder = IRBuilder.current()
        builder.frames.append(self)
        self._place = builder.place
        return self

    def __exit__(self, exc_type, exc_value, trace):
        frames = IRBuilder.current().frames
        if exc_type is not None:
            del frames[frames.index(self) :]
            return
        # What was entered without `with` ends here, the last one first.
        while self._callbacks:
            self._callbacks.pop()()
        if frames[-1] is not self:
            raise ValueError(f"IRBuilder: expected the end of {type(frames[-1]).__name__} first")
        frames.pop()
        builder = IRBuilder.current()
        inner, builder.place = builder.place, self._place
        self._finish()
        builder.place = inner

    def _finish(self):
        raise NotImplementedError

    def add_callback(self, callback):
        """Runs `callback` when the frame ends."""
        self._callbacks.append(callback)


class IRBuilder:
    """Holds the frames being built and, at the end, the result."""

    def __init__(self):
        self.frames = []
        self.result = None
        self.place = None  # where in a text the statements come from: arguments of _set_span

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, exc_type, exc_value, trace):
        _stack().pop()

    @staticmethod
    def current():
        """The innermost builder."""
        stack = _stack()
        if not stack:
            raise ValueError("IRBuilder: expected to be inside `with IRBuilder():`, got no builder")
        return stack[-1]

    @staticmethod
    def is_in_scope():
        return bool(_stack())

    def get(self):
        """What was built."""
        if self.result is None:
            raise ValueError(
                "IRBuilder: expected a function, a module or a statement to have been built"
            )
        return self.result

    @staticmethod
    def name(s, v):
        """Gives a variable or buffer its name."""
        _set_name(v, s)
        return v

    @staticmethod
    def name_many(s, vs):
        if len(s) != len(vs):
            raise ValueError(
                f"IRBuilder: expected as many names as values, got {len(s)} and {len(vs)}"
            )
        return [IRBuilder.name(name, value) for name, value in zip(s, vs, strict=True)]

    def mark(self, node):
        """Notes on a node where in the text it comes from."""
        if self.place is not None:
            _set_span(node, *self.place)

    def find(self, kind):
        """The innermost frame of a class, or None."""
        for frame in reversed(self.frames):
            if isinstance(frame, kind):
                return frame
        return None


def _stack():
    if not hasattr(_state, "builders"):
        _state.builders = []
    return _state.builders
