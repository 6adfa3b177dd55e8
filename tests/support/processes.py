# SPDX-License-Identifier: Apache-2.0
"""What has become of other processes."""

import time


def is_running(pid):
    """Whether it is there and no zombie; one that ends while it is looked at is not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
