# SPDX-License-Identifier: Apache-2.0
"""Running compiled models on remote devices."""

from ..runner.config import unavailable


def run_module_via_rpc(rpc_config, lib, dev_type, args, continuation):
    """Uploads a library and runs it on a remote device; these are not there yet."""
    unavailable("run_module_via_rpc")
