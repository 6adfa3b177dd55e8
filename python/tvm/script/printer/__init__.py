# SPDX-License-Identifier: Apache-2.0
"""Trees of Python text, for tools that write TVMScript-like programs of their own.

Programs themselves are printed by `script()`, which streams its text and makes no such tree.
"""

from . import doc
from .doc_printer import to_python_script

__all__ = ["doc", "to_python_script"]
