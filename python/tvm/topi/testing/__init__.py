# SPDX-License-Identifier: Apache-2.0
"""What operators compute, in NumPy: references for tests."""

from .convolution import *  # noqa: F403
from .elements import *  # noqa: F403
from .norms import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .sampled import *  # noqa: F403
from .windows import *  # noqa: F403
