# SPDX-License-Identifier: Apache-2.0
"""Random valid TIR programs, for checking passes, schedules and code generators.

program = generate(seed)
expected = program.interpret()
found = program.outcome(tvm.compile(program.module, "llvm"))
assert program.difference(expected, found) is None
"""

from .kernels import generate_kernel
from .program import Outcome, Program, generate, node_kinds, shares

__all__ = ["Outcome", "Program", "generate", "generate_kernel", "node_kinds", "shares"]
