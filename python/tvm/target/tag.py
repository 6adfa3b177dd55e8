# SPDX-License-Identifier: Apache-2.0
"""Target tags: names of machines."""

import json

from tvm._derive import fill

_target, _ = fill("tvm.target")


def list_tags():
    """{tag: target} of all tags."""
    return {str(name): _target("Target_")(name) for name in _target("ListTags")()}


def register_tag(name, config, override=False):
    """Adds a tag for a target given as a dict."""
    return _target("RegisterTag")(name, json.dumps(config), override)
