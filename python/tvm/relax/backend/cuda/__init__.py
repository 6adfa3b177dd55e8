# SPDX-License-Identifier: Apache-2.0
"""The stages of the pipeline for cuda."""

from tvm.relax.pipeline import backend_functions

globals().update(backend_functions("cuda"))
