# SPDX-License-Identifier: Apache-2.0
"""Frames: what each statement with a body needs to know until its end."""

from tvm import tir
from tvm.ir import DictAttrs, Range, TupleType
from tvm.tir import PrimFunc, Var, analysis

from ..base import IRBuilder, IRBuilderFrame
from ..ir import IRModuleFrame, def_function

NOTHING = tir.Evaluate(0)


def add(stmt):
    """Adds a statement to the innermost frame, or makes it the result."""
    builder = IRBuilder.current()
    builder.mark(stmt)
    for frame in reversed(builder.frames):
        if isinstance(frame, TIRFrame):
            frame.stmts.append(stmt)
            return
    builder.result = stmt


def as_stmt(stmts):
    """The statements as one; sequences in them become part of it."""
    flat = []
    for stmt in stmts:
        flat += stmt.seq if isinstance(stmt, tir.SeqStmt) else [stmt]
    return tir.Evaluate(0) if not flat else flat[0] if len(flat) == 1 else tir.SeqStmt(flat)


class TIRFrame(IRBuilderFrame):
    """A frame that collects statements."""

    def __init__(self):
        super().__init__()
        self.stmts = []

    def body(self):
        return as_stmt(self.stmts)


class ScopeFrame(TIRFrame):
    """A frame given by what it becomes, and by what entering it gives."""

    def __init__(self, make, value=None):
        super().__init__()
        self._make, self._value = make, value
        make(NOTHING)  # what is wrong is wrong here, not at the end of the body

    def __enter__(self):
        super().__enter__()
        return self if self._value is None else self._value

    def _finish(self):
        add(self._make(self.body()))


class AssertFrame(ScopeFrame):
    pass


class LetFrame(ScopeFrame):
    pass


class RealizeFrame(ScopeFrame):
    pass


class AllocateFrame(ScopeFrame):
    pass


class AllocateConstFrame(ScopeFrame):
    pass


class AttrFrame(ScopeFrame):
    pass


class WhileFrame(ScopeFrame):
    pass


class DeclBufferFrame(ScopeFrame):
    pass


class LaunchThreadFrame(ScopeFrame):
    pass


class ForFrame(TIRFrame):
    """One loop, or the loops of a grid."""

    def __init__(self, vars, doms, make, annotations=None):
        super().__init__()
        self.vars, self.doms, self._make, self.annotations = vars, doms, make, annotations

    def __enter__(self):
        super().__enter__()
        return self.vars if len(self.vars) != 1 else self.vars[0]

    def _finish(self):
        add(self._make(self.vars, self.doms, self.body()))


class IfFrame(TIRFrame):
    """A condition with the branches that Then and Else frames leave in it."""

    def __init__(self, condition):
        super().__init__()
        self.condition, self.then_case, self.else_case = condition, None, None

    def _finish(self):
        if self.stmts:
            raise ValueError("If: expected statements inside Then and Else only")
        if self.then_case is None:
            raise ValueError("If: expected a Then")
        add(tir.IfThenElse(self.condition, self.then_case, self.else_case))


class _BranchFrame(TIRFrame):
    field = ""

    def __enter__(self):
        frames = IRBuilder.current().frames
        if not frames or not isinstance(frames[-1], IfFrame):
            raise ValueError(f"{type(self).__name__[:-5]}: expected to be directly inside an If")
        if getattr(frames[-1], self.field) is not None:
            raise ValueError(f"{type(self).__name__[:-5]}: expected once in an If, got twice")
        return super().__enter__()

    def _finish(self):
        setattr(IRBuilder.current().frames[-1], self.field, self.body())


class ThenFrame(_BranchFrame):
    field = "then_case"


class ElseFrame(_BranchFrame):
    field = "else_case"


class BlockInitFrame(TIRFrame):
    """The statement that starts a reduction."""

    def __enter__(self):
        block = IRBuilder.current().find(BlockFrame)
        if block is None:
            raise ValueError("init: expected to be inside a block")
        if block.init is not None:
            raise ValueError("init: expected once in a block, got twice")
        return super().__enter__()

    def _finish(self):
        IRBuilder.current().find(BlockFrame).init = self.body()


class BlockFrame(TIRFrame):
    """A block and how it is realized."""

    def __init__(self, name, no_realize):
        super().__init__()
        self.name, self.no_realize = name, no_realize
        self.iter_vars, self.iter_values, self.predicate = [], [], None
        self.reads, self.writes, self.annotations = None, None, None
        self.init, self.alloc_buffers, self.match_buffers = None, [], []

    def _finish(self):
        add(self.realize())

    def realize(self):
        """The block where it runs."""

        def make(reads, writes):
            return tir.Block(
                self.iter_vars, reads, writes, self.name, self.body(), self.init,
                self.alloc_buffers, self.match_buffers, self.annotations or {},
            )  # fmt: skip

        reads, writes = self.reads, self.writes
        if (reads is None or writes is None) and self._is_root():
            reads, writes = reads or [], writes or []
        elif reads is None or writes is None:
            found = analysis.get_block_read_write_region(make([], []), self._buffers())
            reads = found[0] if reads is None else reads
            writes = found[1] if writes is None else writes
        block = make(reads, writes)
        if self.no_realize:
            if self.predicate is not None or any(v is not None for v in self.iter_values):
                raise ValueError("block: expected no bindings and no T.where with no_realize=True")
            return block
        predicate = tir.const(True, "bool") if self.predicate is None else self.predicate
        return tir.BlockRealize(self.iter_values, predicate, block)

    def _is_root(self):
        """A block without iterators that is the body of the function."""
        frames = IRBuilder.current().frames
        return not self.iter_vars and bool(frames) and isinstance(frames[-1], PrimFuncFrame)

    def _buffers(self):
        """Buffers in scope, by their data."""
        frames = IRBuilder.current().frames
        func = next((f for f in frames if isinstance(f, PrimFuncFrame)), None)
        found = [*func.buffer_map.values(), *func.root_alloc_buffers] if func else []
        for frame in [*(f for f in frames if isinstance(f, BlockFrame)), self]:
            found += frame.alloc_buffers + [m.buffer for m in frame.match_buffers]
        return {buffer.data: buffer for buffer in found}


class PrimFuncFrame(TIRFrame):
    """A function."""

    def __init__(self, is_private=False, root_block=True):
        super().__init__()
        self.is_private, self.root_block = is_private, root_block
        self.name, self.args, self.ret_type, self.attrs = None, [], None, None
        self.buffer_map, self.root_alloc_buffers = {}, []
        self.declared = {}  # variables that the signature names before the body declares them

    def _finish(self):
        attrs = dict(self.attrs or {})
        if not self.is_private and "global_symbol" not in attrs and self.name is not None:
            attrs["global_symbol"] = self.name
        ret_type = TupleType([]) if self.ret_type is None else self.ret_type
        func = PrimFunc(
            self.args, self._with_root(self.body()), ret_type, self.buffer_map, DictAttrs(attrs)
        )
        builder = IRBuilder.current()
        if builder.find(IRModuleFrame) is not None:
            if self.name is None:
                raise ValueError("prim_func: expected a name inside a module")
            def_function(self.name, func)
        else:
            builder.result = func

    def _with_root(self, body):
        """Blocks live in a root block; it need not be written."""
        is_root = isinstance(body, tir.BlockRealize) and not body.block.iter_vars
        insert = self.root_alloc_buffers or (self.root_block and not is_root and has_block(body))
        if not insert:
            return body
        root = tir.Block([], [], [], "root", body, None, self.root_alloc_buffers)
        return tir.BlockRealize([], tir.const(True, "bool"), root)

    def add_param(self, name, obj):
        """A scalar, a pointer or a buffer, which gets a handle."""
        IRBuilder.name(name, obj)
        if isinstance(obj, Var):
            self.args.append(obj)
        else:
            handle = Var(f"{name}_handle", "handle")
            self.args.append(handle)
            self.buffer_map[handle] = obj
        return obj


def has_block(stmt):
    return bool(_has_block(stmt))


def range_of(dom):
    """The range that an extent, a pair (begin, end) or a Range stands for."""
    if isinstance(dom, Range):
        return dom
    if isinstance(dom, (list, tuple)):
        if len(dom) != 2:
            raise ValueError(f"axis: expected (begin, end), got {len(dom)} values")
        return Range.from_min_extent(dom[0], extent_of(dom[0], dom[1]))
    dom = tir.convert(dom)
    return Range.from_min_extent(tir.const(0, dom.dtype), dom)


def _functions():
    import tvm_ffi

    return tvm_ffi.get_global_func("script._has_block"), tvm_ffi.get_global_func("script._extent")


_has_block, extent_of = _functions()
