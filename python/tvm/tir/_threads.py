# SPDX-License-Identifier: Apache-2.0
"""GPU launches in the interpreter: threads of a block run one at a time, each to the next barrier.

Every thread is a Python thread with an interpreter of its own, but only one of them runs at any
moment and in a fixed order (or one drawn from a seed), so that results are repeatable.
"""

import contextlib
import copy
import itertools
import random
import threading

from .expr import Call, IterVar, Var
from .stmt import AttrStmt, For
from .stmt_functor import post_order_visit

MEET = ("tvm_storage_sync", "tvm_thread_allreduce", "tvm_warp_shuffle", "tvm_warp_shuffle_up",
        "tvm_warp_shuffle_down", "tvm_load_matrix_sync", "tvm_store_matrix_sync",
        "tvm_fill_fragment", "tvm_mma_sync", "mma_store", "create_barriers")  # fmt: skip


class Cancelled(BaseException):
    """Ends a thread because another one failed."""


def launched(stmt):
    """(tag, variable, extent) where `stmt` launches threads, else None."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent":
        if isinstance(stmt.node, IterVar):
            return str(stmt.node.thread_tag), stmt.node.var, stmt.value
    if isinstance(stmt, For) and stmt.thread_binding is not None:
        tag = str(stmt.thread_binding.thread_tag)
        if not tag.startswith("vthread"):
            return tag, stmt.loop_var, stmt.extent
    return None


def indices_of(stmt):
    """All thread indices launched in `stmt`, {tag: extent}, and whether its threads ever meet."""
    found, meets = {}, []

    def visit(node):
        launch = launched(node)
        if launch:
            found.setdefault(launch[0], launch[2])
        elif isinstance(node, Call):
            name = getattr(node.op, "name", "")[4:]
            if name in MEET or name.startswith("ptx_"):
                meets.append(node)

    post_order_visit(stmt, visit)
    return found, bool(meets)


class Worker:
    """One thread of a team."""

    def __init__(self, team, interpreter, number, indices, body):
        self.team, self.go, self.at, self.error = team, threading.Semaphore(0), None, None
        self.number, self.group, self.until = number, None, None
        self.copies, self.phases = [[]], {}  # groups of copies that run; barriers waited for
        self.interpreter = copy.copy(interpreter)
        for name in ("values", "realized"):
            setattr(self.interpreter, name, dict(getattr(interpreter, name)))
        self.interpreter.worker, self.indices, self.allocated = self, indices, {}
        self.threads = {}  # variables that are thread indices, with their tags
        self.position = []  # in sequences and loops, outermost first
        self.thread = threading.Thread(target=self.run, args=(body,), daemon=True)
        self.is_alive = True
        self.thread.start()

    def run(self, body):
        self.go.acquire()
        try:
            if not self.team.failed:
                self.interpreter.run(body)
        except Cancelled:
            pass
        except BaseException as error:
            self.error = error
        self.is_alive, self.at, self.until = False, None, None
        self.team.turn.release()

    def pause(self):
        """Lets other threads run."""
        self.team.turn.release()
        self.go.acquire()
        if self.team.failed:
            raise Cancelled

    def meet(self, where, value=None, group=None):
        """Waits for all threads of the team; gives {indices: value} of all of them. For those of
        one group only, (how many threads a group has, its number): a list."""
        self.at, self.value, self.group = where, value, group
        self.pause()
        return self.board

    def wait_until(self, condition):
        """Waits for what other threads, or copies, do."""
        self.until = condition
        while not condition():
            self.pause()
        self.until = None

    def shared(self, key, make):
        """Memory that all threads of the team have in common: the first one to come makes it."""
        count = self.allocated[key] = self.allocated.get(key, 0) + 1
        if (key, count) not in self.team.memory:
            self.team.memory[key, count] = make()
        return self.team.memory[key, count]


class Team:
    """The threads of one block."""

    def __init__(self, interpreter, extents, fixed, body):
        self.failed, self.memory, self.later = False, {}, []
        self.turn = threading.Semaphore(0)
        self.extents = extents
        self.random = random.Random(interpreter.seed) if interpreter.threads == "random" else None
        order = itertools.product(*(range(n) for n in reversed(extents.values())))
        names = list(reversed(extents))
        self.workers = [
            Worker(self, interpreter, i, {**fixed, **dict(zip(names, ids, strict=True))}, body)
            for i, ids in enumerate(order)
        ]
        if interpreter.threads == "backward":
            self.workers.reverse()

    def draw(self):
        """A number below 1, random where threads are."""
        return self.random.random() if self.random else 1.0

    def run(self):
        alive = self.workers
        while alive:
            if self.later and self.draw() < 0.2:
                self.later.pop(0)()
            ready = [w for w in alive if w.at is None and (w.until is None or w.until())]
            if self.random or not ready:  # a warp may be far ahead of others
                ready = ready + self.met(alive)
            if not ready and self.later:  # everybody waits for a copy
                self.later.pop(0)()
                continue
            if not ready:
                self.cancel()
                raise ValueError("interpret: expected all threads of a block to meet at a barrier")
            for worker in self.chosen(ready):
                worker.go.release()
                self.turn.acquire()
                if worker.error is not None:
                    self.cancel()
                    raise worker.error
            alive = [w for w in self.workers if w.is_alive]

    def met(self, alive):
        """Threads that have waited for each other and may go on: of warps, or all of them."""
        groups = {}
        for w in alive:
            if w.at is not None and w.group is not None:
                groups.setdefault(w.group, []).append(w)
        ready = []
        for group, members in groups.items():
            size, number = group
            whole = sum(w.number // size == number for w in self.workers)
            if len(members) == whole and all(w.at.same_as(members[0].at) for w in members):
                board = [w.value for w in sorted(members, key=lambda w: w.number)]
                ready += self.released(members, board)
        first = alive[0].at
        if not ready and first is not None and alive[0].group is None:
            if all(w.at is not None and w.group is None and w.at.same_as(first)
                   for w in self.workers):  # fmt: skip
                ready = self.released(alive, {tuple(w.indices.items()): w.value for w in alive})
        return ready

    @staticmethod
    def released(workers, board):
        for w in workers:
            w.at, w.board = None, board
        return workers

    def chosen(self, ready):
        """Who runs next, each to where it waits again."""
        if self.random:  # some warps, so that others fall behind
            warps = sorted({w.number // 32 for w in ready})
            some = set(self.random.sample(warps, self.random.randint(1, len(warps))))
            ready = [w for w in ready if w.number // 32 in some]
            self.random.shuffle(ready)
            return ready
        # In step: who is behind goes first. (Positions differ only in that mode.)
        first = min(w.position for w in ready)
        return [w for w in ready if w.position == first]

    def cancel(self):
        self.failed = True
        for worker in self.workers:
            if worker.is_alive:
                worker.go.release()
                self.turn.acquire()


def warp_size(func):
    """The size of a warp on the function's target, 0 where that is not known."""
    target = func.attrs["target"] if func.attrs is not None and "target" in func.attrs else None
    return int(target.attrs.get("thread_warp_size") or 0) if target is not None else 0


class Launches:
    """What the interpreter does with launches and what threads exchange."""

    worker, depth = None, 0
    warp_size = 0  # threads that have memory of scope warp in common; 0: those of a block

    def step(self, number):
        """Statement (or iteration) `number` begins: threads in step wait here for each other."""
        if self.worker is not None and self.threads == "lockstep":
            self.worker.position = [*self.worker.position[: self.depth], number]
            self.worker.pause()

    @contextlib.contextmanager
    def nested(self):
        """A sequence or a loop: positions inside have one number more."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def launch(self, stmt):
        """Runs a statement that launches threads."""
        tag, var, extent = launched(stmt)
        size = self.eval(extent)
        low = self.eval(stmt.min) if isinstance(stmt, For) else 0
        if self.worker is not None and tag in self.worker.indices:
            if tag in self.worker.team.extents and size != self.worker.team.extents[tag]:
                raise ValueError(
                    f"interpret: expected {self.worker.team.extents[tag]} threads for {tag}, "
                    f"got {size}"
                )
            self.worker.threads[var] = tag
            return self.bind_thread(stmt, var, low + self.worker.indices[tag])
        found, meets = indices_of(stmt)
        if self.worker is None and (meets or self.threads == "lockstep"):
            sizes = {t: self.eval(e) for t, e in found.items()}
            blocks = {t: n for t, n in sizes.items() if not t.startswith("threadIdx")}
            team = {t: n for t, n in sorted(sizes.items()) if t not in blocks}
            for ids in itertools.product(*map(range, blocks.values())):
                fixed = dict(zip(blocks, ids, strict=True))
                Team(self, team, fixed, stmt).run()
            return None
        for i in range(low, low + size):
            self.bind_thread(stmt, var, i)
        return None

    def bind_thread(self, stmt, var, index):
        values = {var: index}
        if isinstance(stmt, For):
            values[stmt.thread_binding.var] = index
        with self.bound_all(values):
            self.run(stmt.body)

    # ---- what threads do together ---------------------------------------------------------------
    def call_tvm_storage_sync(self, e):
        if self.worker is not None:
            self.worker.meet(e)
        return 0

    def call_tvm_warp_activemask(self, e):
        return -1

    def call_tvm_thread_allreduce(self, e):
        """(number of values, values, condition, results, thread indices) in a reduce_scope."""
        count = self.eval(e.args[0])
        values, condition = e.args[1 : 1 + count], e.args[1 + count]
        results, threads = e.args[2 + count : 2 + 2 * count], e.args[2 + 2 * count :]
        reducer = self.reducer
        mine = [self.eval(v) for v in values] if self.eval(condition) else None
        tags = {self.worker.threads[t] for t in threads if isinstance(t, Var)}
        board = self.worker.meet(e, mine)
        total = [self.eval(v) for v in reducer.identity_element]
        for indices, value in board.items():
            same = all(self.worker.indices[t] == i for t, i in indices if t not in tags)
            if same and value is not None:
                pairs = [
                    *zip(reducer.lhs, total, strict=True),
                    *zip(reducer.rhs, value, strict=True),
                ]
                with self.bound_all(dict(pairs)):
                    total = [self.eval(r) for r in reducer.result]
        for result, value in zip(results, total, strict=True):
            self.store(result.buffer, [self.eval(i) for i in result.indices], value)
        return 0

    def warp(self):
        """The number of the calling thread's warp in its block."""
        order = [tuple(i.items()) for i in self.all_indices()]
        mine = order.index(tuple(self.worker.indices.items()))
        return mine // self.warp_size if self.warp_size else 0

    def shuffle(self, e, source):
        """The value of the lane source(lane, width) of the calling thread's part of the warp."""
        _, value, _, width, warp = e.args
        width, warp = self.eval(width), self.eval(warp)
        ids = {tuple(w.items()): i for i, w in enumerate(self.all_indices())}
        mine = ids[tuple(self.worker.indices.items())]
        board = self.worker.meet(e, self.eval(value))
        lane = mine % warp
        begin = lane // width * width
        other = mine - lane + begin + source(lane - begin, width)
        by_id = {ids[key]: v for key, v in board.items()}
        if other not in by_id:
            raise ValueError(f"interpret: expected a thread in lane {other % warp}, got none")
        return by_id[other]

    def all_indices(self):
        """The indices of a team's threads, x fastest."""
        team, mine = self.worker.team.extents, self.worker.indices
        fixed = {t: i for t, i in mine.items() if t not in team}
        names = list(reversed(team))
        for ids in itertools.product(*(range(team[t]) for t in names)):
            yield {**fixed, **dict(zip(names, ids, strict=True))}

    def call_tvm_warp_shuffle(self, e):
        lane = self.eval(e.args[2])
        return self.shuffle(e, lambda _, width: lane % width)

    def call_tvm_warp_shuffle_up(self, e):
        delta = self.eval(e.args[2])
        return self.shuffle(e, lambda i, _: i - delta if i >= delta else i)

    def call_tvm_warp_shuffle_down(self, e):
        delta = self.eval(e.args[2])
        return self.shuffle(e, lambda i, width: i + delta if i + delta < width else i)
