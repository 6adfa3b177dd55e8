# SPDX-License-Identifier: Apache-2.0
"""The executor of graphs in JSON, as Python objects."""

import numpy as np

from tvm._derive import function
from tvm.runtime import tensor

_create = function("tvm.graph_executor.create", __name__)


def create(graph_json_str, libmod, device):
    """An executor for a graph, with the functions of a library."""
    if isinstance(device, (list, tuple)):
        if len(device) != 1:
            raise ValueError(f"graph_executor.create: expected one device, got {len(device)}")
        device = device[0]
    return GraphModule(_create(str(graph_json_str), getattr(libmod, "mod", libmod), device))


class GraphModule:
    """Inputs are set, the graph is run, outputs are taken."""

    def __init__(self, module):
        self.module = module
        self._set_input = module["set_input"]
        self._run = module["run"]
        self._get_output = module["get_output"]

    def set_input(self, key=None, value=None, **params):
        """Copies an input, by name or index, or several by name."""
        if key is not None:
            self._set_input(key, self._tensor(value))
        for name, array in params.items():
            if self.module["get_input_index"](name) >= 0:  # what the graph does not need
                self._set_input(name, self._tensor(array))

    @staticmethod
    def _tensor(value):
        return tensor(value) if isinstance(value, (np.ndarray, list, int, float)) else value

    def run(self, **input_dict):
        """Runs the graph, with some inputs set first."""
        if input_dict:
            self.set_input(**input_dict)
        self._run()

    def get_output(self, index, out=None):
        """An output, or a copy of it in `out`."""
        if out is None:
            return self._get_output(index)
        self._get_output(index, out)
        return out

    def get_input(self, index, out=None):
        """An input, by name or index, or a copy of it in `out`."""
        value = self.module["get_input"](index)
        return value if out is None else value.copyto(out)

    def get_num_inputs(self):
        """How many inputs there are, parameters included."""
        return self.module["get_num_inputs"]()

    def get_num_outputs(self):
        """How many outputs there are."""
        return self.module["get_num_outputs"]()

    def get_input_index(self, name):
        """The index of an input, -1 when there is none of the name."""
        return self.module["get_input_index"](name)

    def get_input_info(self):
        """(shapes by name, types by name)"""
        info = self.module["get_input_info"]()
        return dict(info["shape"]), dict(info["dtype"])

    def load_params(self, params_bytes):
        """Sets the parameters that tvm.runtime.save_param_dict wrote."""
        self.module["load_params"](bytes(params_bytes))

    def share_params(self, other, params_bytes):
        """Uses the parameters of another executor, without a copy."""
        self.module["share_params"](other.module, bytes(params_bytes))

    def __getitem__(self, key):
        return self.module[key]

    def benchmark(self, device, func_name="run", repeat=5, number=5, min_repeat_ms=None, **inputs):
        """Measures the graph on this device."""
        if inputs:
            self.set_input(**inputs)
        return self.module.time_evaluator(
            func_name, device, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms or 0
        )()
