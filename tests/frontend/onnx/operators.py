# SPDX-License-Identifier: Apache-2.0
"""Which operators of which opsets can be imported: python -m tests.frontend.onnx.operators PAGE
writes the tables."""

import sys

import onnx
from tvm.relax.frontend.onnx import supported_operators

from .. import scoreboard

SECTION = "onnx_operators"
# The operators of com.microsoft that models in use contain; the domain has no published schemas.
MICROSOFT = """Attention BeamSearch BiasGelu DynamicQuantizeLSTM DynamicQuantizeMatMul
EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul GatherBlockQuantized Gelu
GroupQueryAttention MatMulBnb4 MatMulIntegerToFloat MatMulNBits MoE MultiHeadAttention QAttention
QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu
QLinearMul QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QuickGelu RotaryEmbedding
SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization""".split()


def forms():
    """{domain: {operator: [versions]}} of all that was ever defined and is not deprecated."""
    found = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            by_name = found.setdefault(schema.domain, {})
            by_name.setdefault(schema.name, set()).add(schema.since_version)
    return found


def lines():
    table = ["| domain | operators | imported | forms over all opsets | imported | not yet |"]
    table.append("| --- | --- | --- | --- | --- | --- |")
    for domain, operators in sorted(forms().items()):
        known = set(supported_operators(domain))
        missing = sorted(set(operators) - known)
        count = sum(len(v) for v in operators.values())
        there = sum(len(v) for name, v in operators.items() if name in known)
        table.append(
            f"| {domain or 'ai.onnx'} | {len(operators)} | {len(operators) - len(missing)} "
            f"| {count} | {there} | {', '.join(missing)} |"
        )
    known = set(supported_operators("com.microsoft"))
    missing = sorted(set(MICROSOFT) - known)
    count = len(MICROSOFT) - len(missing)
    table.append(f"| com.microsoft | {len(MICROSOFT)} | {count} | | | {', '.join(missing)} |")
    table += ["", "| opset of ai.onnx | " + " | ".join(map(str, range(1, 29))) + " |"]
    table.append("| ---" * 29 + " |")
    known, operators = set(supported_operators()), forms()[""]
    for what, names in (("operators", operators), ("imported", known & set(operators))):
        counts = (sum(min(operators[n]) <= v for n in names) for v in range(1, 29))
        table.append(f"| {what} | " + " | ".join(map(str, counts)) + " |")
    return table


if __name__ == "__main__":
    scoreboard.write_section(sys.argv[1], SECTION, lines())
