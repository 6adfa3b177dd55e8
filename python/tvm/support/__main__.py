# SPDX-License-Identifier: Apache-2.0
"""`python -m tvm.support [--json]`."""

import sys

from . import describe

if sys.argv[1:] not in ([], ["--json"]):
    sys.exit(f"usage: python -m tvm.support [--json]; got {' '.join(sys.argv[1:])}")
describe(as_json="--json" in sys.argv)
