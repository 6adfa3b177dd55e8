# SPDX-License-Identifier: Apache-2.0
"""Target tags: names of machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tvm._derive import fill

if TYPE_CHECKING:
    from .target import Target

_target, _ = fill("tvm.target")


def list_tags() -> dict[str, Target]:
    """{tag: target} of all tags."""
    return {str(name): _target("Target_")(name) for name in _target("ListTags")()}


def register_tag(name: str, config: dict[str, Any], override: bool = False) -> Target:
    """Adds a tag for a target given as a dict."""
    return _target("RegisterTag")(name, json.dumps(config), override)
