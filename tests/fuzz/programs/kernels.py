# SPDX-License-Identifier: Apache-2.0
"""Random GPU kernels: stages of copies, reductions and pipelines over the threads of blocks.

What a kernel computes does not depend on the order in which its threads run, up to the barriers
that lowering inserts; `tvm.tir.interpret(module, threads="lockstep")` runs it before those.
"""

import random
import textwrap

from .numbers import fill
from .program import Argument, Program


class _Kernel:
    """Writes one kernel as TVMScript."""

    def __init__(self, rng):
        self.rng = rng
        self.blocks = rng.choice([1, 2])
        self.threads = rng.choice([2, 4, 4])
        self.rows = rng.randint(1, 3)
        self.each = rng.choice([1, 2, 2, 4])  # elements of a row per thread
        self.y = 1  # threads along threadIdx.y
        self.dtype = rng.choice(["float32", "float32", "int32", "int8", "float16"])
        self.buffers, self.stages, self.outputs = [], [], []
        self.features = {"kernel"}
        self.source = "A[{b}, {r}, {w}]"
        self.guarded = rng.random() < 0.2  # the last thread has less to do
        self.count = 0

    @property
    def width(self):
        return self.threads * self.y * self.each - (1 if self.guarded and self.each > 1 else 0)

    def name(self, base):
        self.count += 1
        return f"{base}{self.count}"

    def chance(self, probability):
        return self.rng.random() < probability

    # ---- parts ----------------------------------------------------------------------------------
    def value(self, r, w, b="b"):
        """Something of the source, at another place of the row."""
        last = self.width - 1
        w = self.rng.choice([w, w, f"{last} - {w}", f"({w} * 3 + 1) % {self.width}"])
        load = self.source.format(b=b, r=r, w=w)
        kind = self.rng.choice(["plain", "plus", "max", "select", "double"])
        one = f'T.Cast("{self.dtype}", 1)'
        return {
            "plain": load,
            "plus": f"{load} + {one}",
            "max": f"T.max({load}, {one})",
            "select": f'T.Select({w} < {last}, {load}, {one})',
            "double": f"{load} + {load}",
        }[kind]  # fmt: skip

    def memory(self, shape, scopes):
        name, scope = self.name("S"), self.rng.choice(scopes)
        self.buffers.append(f'{name} = T.alloc_buffer({shape}, "{self.dtype}", scope="{scope}")')
        return name, scope

    def output(self, shape="rows"):
        name = self.name("O")
        dims = [self.blocks, self.rows, self.width] if shape == "rows" else [self.blocks, self.rows]
        self.outputs.append((name, dims))
        return name

    def over_threads(self, body, inner="serial", virtual=False):
        """Loops over a row, of which each thread has a part; the body uses {w}."""
        loops, terms = [], []
        each = self.each
        if virtual and each % 2 == 0:
            loops.append('for v in T.thread_binding(2, "vthread.x"):')
            terms.append(f"v * {self.threads * self.y * each // 2}")
            each //= 2
        if self.y > 1:
            loops.append(f'for y in T.thread_binding({self.y}, "threadIdx.y"):')
            terms.append(f"y * {self.threads * each}")
        loops.append(f'for t in T.thread_binding({self.threads}, "threadIdx.x"):')
        loops.append(f"for j in T.{inner}({each}):")
        terms += [f"t * {each}", "j"]
        return self.nest(loops, body.replace("{place}", " + ".join(terms)))

    @staticmethod
    def nest(loops, body):
        for loop in reversed(loops):
            body = loop + "\n" + textwrap.indent(body, "    ")
        return body

    def axes(self, rows="r"):
        text = f"vb = T.axis.spatial({self.blocks}, b)\nvr = T.axis.spatial({self.rows}, {rows})\n"
        text += f"vw = T.axis.spatial({self.width}, {{place}})\n"
        if self.width < self.threads * self.y * self.each:
            text += f"T.where({{place}} < {self.width})\n"
        return text

    # ---- stages ---------------------------------------------------------------------------------
    def copy(self, last):
        """Each thread writes its part of every row."""
        inner = self.rng.choice(["serial", "unroll", "vectorized"])
        name, scope = (
            (self.output(), "global")
            if last
            else self.memory(f"({self.rows}, {self.width})", ["shared", "shared", "shared.dyn"])
        )
        body = self.axes()
        if scope.startswith("shared") and inner == "serial" and self.chance(0.3):
            body += 'T.block_attr({"tir.manifest_shared_memory_local_stage": 1})\n'
        elif scope.startswith("shared") and self.chance(0.2):
            body += 'T.block_attr({"buffer_dim_align": [[0, 0, 8, 1]]})\n'
        place = "vb, vr, vw" if last else "vr, vw"
        body += f"{name}[{place}] = {self.value('vr', 'vw', 'vb')}"
        block = f'with T.block("{name}"):\n' + textwrap.indent(body, "    ")
        virtual = inner == "serial" and self.chance(0.25)
        text = self.nest(
            [f"for r in range({self.rows}):"], self.over_threads(block, inner, virtual)
        )
        if not last:
            self.source = name + "[{r}, {w}]"
        return text

    def auto_copy(self):
        name, _ = self.memory(f"({self.rows}, {self.width})", ["shared"])
        reads = self.source.split("[")[0]
        whole = f"0:{self.rows}, 0:{self.width}"
        reads += f"[b, {whole}]" if reads == "A" else f"[{whole}]"
        size = self.rng.choice([0, 4, 8, 16])
        note = f'"vector_bytes": {size}' if size else ""
        text = f"""with T.block("{name}"):
    T.reads({reads})
    T.writes({name}[{whole}])
    T.block_attr({{"auto_copy": 1, {note}}})
    for r, w in T.grid({self.rows}, {self.width}):
        {name}[r, w] = {self.source.format(b="b", r="r", w="w")}"""
        self.source = name + "[{r}, {w}]"
        return text

    def reduction(self, last):
        """A row becomes one value, by all threads."""
        name, _ = (self.output("sums"), "") if last else self.memory(f"({self.rows},)", ["shared"])
        place = "vb, vr" if last else "vr"
        operator, start = self.rng.choice([("{} + {}", 0), ("T.max({}, {})", -64)])
        update = operator.format(f"{name}[{place}]", self.source.format(b="vb", r="vr", w="vk"))
        body = f"""vb = T.axis.spatial({self.blocks}, b)
vr = T.axis.spatial({self.rows}, r)
vk = T.axis.reduce({self.width}, k * {self.threads} + t)
{self.reduction_guard()}with T.init():
    {name}[{place}] = T.Cast("{self.dtype}", {start})
{name}[{place}] = {update}"""
        block = f'with T.block("{name}"):\n' + textwrap.indent(body, "    ")
        loops = [
            f"for r in range({self.rows}):",
            f"for k in range({self.each}):",
            f'for t in T.thread_binding({self.threads}, "threadIdx.x"):',
        ]
        if not last:
            self.source = name + "[{r}]"
        return self.nest(loops, block)

    def reduction_guard(self):
        if self.width == self.threads * self.each:
            return ""
        return f"T.where(k * {self.threads} + t < {self.width})\n"

    def pipeline(self):
        """Rows one after the other; a part of the next is loaded before this one is done."""
        out, stages = self.output(), self.rng.choice([[0, 1], [0, 2], [0, 0]])
        order = self.rng.choice([[0, 1], [1, 0]]) if stages != [0, 0] else [0, 1]
        notes = f'"software_pipeline_stage": {stages}, "software_pipeline_order": {order}'
        if self.chance(0.3):
            notes += ', "software_pipeline_async_stages": [0]'
        scope = self.rng.choice(["shared", "local"])
        part, own = (self.width, "w") if scope == "shared" else (self.each, "j")
        value = self.source.format(b="b", r="r", w="w")
        guard = f"if t * {self.each} + j < {self.width}:"
        lines = lambda store: (
            f"for j in range({self.each}):\n    {guard}\n        "
            + store.replace("w]", f"t * {self.each} + j]")
        )
        load = lines(f"P[{own}] = {value}")
        use = lines(f'{out}[b, r, w] = P[{own}] + T.Cast("{self.dtype}", 1)')
        source = self.source.split("[")[0]
        whole = f"0:{self.rows}, 0:{self.width}"
        read = f"{source}[b, {whole}]" if source == "A" else f"{source}[{whole}]"
        text = f"""for t in T.thread_binding({self.threads}, "threadIdx.x"):
    for r in T.serial({self.rows}, annotations={{{notes}}}):
        with T.block("rows"):
            T.reads({read})
            T.writes({out}[b, r, 0:{self.width}])
            P = T.alloc_buffer(({part},), "{self.dtype}", scope="{scope}")
            with T.block("load"):
                T.reads({read})
                T.writes(P[0:{part}])
{textwrap.indent(load, " " * 16)}
            with T.block("use"):
                T.reads(P[0:{part}])
                T.writes({out}[b, r, 0:{self.width}])
{textwrap.indent(use, " " * 16)}"""
        return text

    def warp(self):
        """Each thread keeps its part of a row, and reads the part of another one."""
        out, name = self.output(), self.name("W")
        size = self.threads * self.each
        self.buffers.append(f'{name} = T.alloc_buffer(({size},), "{self.dtype}", scope="warp")')
        shift = self.rng.randrange(self.threads)
        other = f"(t + {shift}) % {self.threads} * {self.each} + j"
        own = f"t * {self.each} + j"
        value = self.source.format(b="b", r="r", w=own)
        thread = f'for t in T.thread_binding({self.threads}, "threadIdx.x"):'
        return f"""for r in range({self.rows}):
    {thread}
        for j in range({self.each}):
            with T.block("keep"):
                {name}[{own}] = {value}
    {thread}
        for j in range({self.each}):
            with T.block("ask"):
                {out}[b, r, {own}] = {name}[{other}]"""

    # ---- whole ----------------------------------------------------------------------------------
    def text(self):
        kind = self.rng.choice(["copies", "copies", "reduction", "pipeline", "mixed", "warp"])
        if kind == "copies" and self.chance(0.4):
            self.y = 2
        self.guarded = self.guarded and kind != "warp"  # all threads take part in a shuffle
        parts = []
        for _ in range(self.rng.randint(0, 2)):
            parts.append(self.auto_copy() if self.chance(0.3) else self.copy(False))
        if kind == "reduction":
            last = self.chance(0.4)
            parts.append(self.reduction(last))
            if not last:
                parts.append(self.copy(True))
        elif kind == "pipeline":
            parts.append(self.pipeline())
        elif kind == "warp":
            self.features.add("warp")
            parts.append(self.warp())
        else:
            parts.append(self.copy(True))
            if kind == "mixed":
                self.source = "A[{b}, {r}, {w}]"
                parts.append(self.copy(True))
        params = [("A", [self.blocks, self.rows, self.width]), *self.outputs]
        head = ", ".join(f'{n}: T.Buffer({tuple(d)}, "{self.dtype}")' for n, d in params)
        body = self.nest(
            [f'for b in T.thread_binding({self.blocks}, "blockIdx.x"):'], "\n".join(parts)
        )
        body = "\n".join([*self.buffers, body])
        text = f"@T.prim_func\ndef main({head}):\n" + textwrap.indent(body, "    ")
        return text, params


def generate_kernel(seed):
    """The kernel of a seed: always the same one."""
    from tvm.ir import IRModule
    from tvm.script import from_source

    rng = random.Random(f"kernel {seed}")
    kernel = _Kernel(rng)
    text, params = kernel.text()
    func = from_source(text).with_attr("tir.noalias", True)
    arguments = [Argument(fill(rng, "data", kernel.dtype, dims)) for _, dims in params]
    if kernel.dtype in ("int8", "int32"):
        for argument in arguments:
            argument.value %= 4  # sums do not wrap, whatever their order
    return Program(seed, IRModule({"main": func}), arguments, frozenset(kernel.features))
