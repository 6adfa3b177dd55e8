# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of programs that use tvm; needs pytest only for the decorators."""

from .bisect import *  # noqa: F403
from .features import *  # noqa: F403
from .parametrize import *  # noqa: F403
from .utils import *  # noqa: F403
