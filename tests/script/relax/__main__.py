# SPDX-License-Identifier: Apache-2.0
"""Programs that are printed and parsed back, and how many: python -m tests.script.relax"""

from tests.relax.op.database import ENTRIES

from . import test_round_trip as nodes
from .test_operators import round_trips


def main():
    """An error shows the program that is not equal to the one that was printed."""
    for key in nodes.INFOS:
        nodes.test_struct_info(key)
    nodes.test_every_kind_of_struct_info_has_cases()
    for key in nodes.VALUES:
        nodes.test_expressions(key)
    for func in nodes.FUNCTIONS:
        nodes.same(func)
    nodes.test_every_kind_of_node_has_cases()
    calls = [round_trips(entry) for entry in ENTRIES.values()]
    infos = sum(map(len, nodes.INFOS.values()))
    values = sum(map(len, nodes.VALUES.values())) + len(nodes.FUNCTIONS)
    kinds = len(nodes.VALUES) + len(nodes.STATEMENTS)
    print(f"struct info: {infos} of {len(nodes.INFOS)} kinds, all of them")
    print(f"expressions and functions: {values} of {kinds} kinds of nodes, all of them")
    print(f"operators: {sum(calls)} calls of {sum(map(bool, calls))} of {len(calls)} operators")


if __name__ == "__main__":
    main()
