# SPDX-License-Identifier: Apache-2.0
"""`python -m tvm.support [--json]`."""

import argparse

from . import describe

parser = argparse.ArgumentParser(
    "python -m tvm.support", description="What was built, and where it runs: for bug reports."
)
parser.add_argument("--json", action="store_true", help="print JSON")
describe(as_json=parser.parse_args().json)
