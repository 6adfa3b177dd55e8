# SPDX-License-Identifier: Apache-2.0
"""Makes the kernels that all hosts are tested with importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "host"))
