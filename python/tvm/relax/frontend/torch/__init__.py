# SPDX-License-Identifier: Apache-2.0
"""PyTorch models as graphs: exported programs, traced graphs, and torch.compile.

PyTorch is imported with the first name that needs it; from_archive and supported_operators do not.
"""

import importlib
from typing import TYPE_CHECKING

from tvm._derive import fill

if TYPE_CHECKING:
    from .dynamo import dynamo_capture_subgraphs, relax_dynamo
    from .exported_program_translator import from_exported_program, inspect
    from .fx_translator import from_fx
    from .verification import verify

_NEED_TORCH = {
    "dynamo_capture_subgraphs": "dynamo",
    "relax_dynamo": "dynamo",
    "from_exported_program": "exported_program_translator",
    "inspect": "exported_program_translator",
    "from_fx": "fx_translator",
    "verify": "verification",
}
_derived, _derived_names = fill(__name__)


def __getattr__(name):
    if name not in _NEED_TORCH:
        return _derived(name)
    try:
        module = importlib.import_module(f"{__name__}.{_NEED_TORCH[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"{name}: expected PyTorch to be installed (pip install torch); from_archive reads "
            "files of torch.export.save without it",
            name="torch",
        ) from None
    value = globals()[name] = getattr(module, name)
    return value


def __dir__():
    return sorted({*_derived_names(), *_NEED_TORCH})
