# SPDX-License-Identifier: Apache-2.0
"""A module with a model becomes one with what training it needs."""

import inspect

from tvm import relax
from tvm.ir.transform import module_pass

from .utils import AppendLoss


class Names:
    """The functions and attributes of a module that is trained."""

    BACKBONE_FUNC = "backbone"
    BACKBONE_LOSS_FUNC = "backbone_loss"
    ADJOINT_FUNC = "backbone_loss_adjoint"
    OPTIMIZER_FUNC = "optimizer"
    PARAM_NUM_ATTR_KEY = "param_num"
    STATE_NUM_ATTR_KEY = "state_num"


def _least_arguments(loss):
    params = inspect.signature(loss).parameters.values()
    return sum(p.default is p.empty for p in params)


@module_pass(opt_level=0, name="SetupTrainer")
class SetupTrainer(Names):
    """backbone(inputs…, parameters…, states…)  ->  also backbone_loss, backbone_loss_adjoint with
    the gradients of the parameters, and optimizer.

    The module's attributes param_num and state_num say how many of the last parameters of
    `backbone` are trained, and how many are states, which follow its results. What is made has the
    attributes input_num and optim_state.

    `loss_args` says what the arguments of the loss are: all of them, or those behind the results
    of `backbone`, which are known.
    """

    def __init__(self, loss, optimizer, loss_args, legalize=True):
        self._loss, self._optimizer = loss, optimizer
        self._loss_args, self._legalize = list(loss_args), legalize

    def _checked(self, mod):
        """(backbone, number of parameters, number of states)."""
        attrs = mod.attrs or {}
        backbone = mod[self.BACKBONE_FUNC]
        counts = []
        for key in (self.PARAM_NUM_ATTR_KEY, self.STATE_NUM_ATTR_KEY):
            if key not in attrs:
                raise ValueError(
                    f"SetupTrainer: expected the attribute {key} of the module, got none"
                )
            counts.append(int(attrs[key]))
        if sum(counts) > len(backbone.params):
            raise ValueError(
                f"SetupTrainer: expected at most {len(backbone.params)} parameters and states, "
                f"those of 'backbone', got {sum(counts)}"
            )
        return backbone, *counts

    def transform_module(self, mod, ctx):
        backbone, param_num, state_num = self._checked(mod)
        results = backbone.ret_struct_info
        results = results.fields if isinstance(results, relax.TupleStructInfo) else [results]
        predictions = results[: self._loss.num_backbone_outputs]
        loss_args = self._loss_args
        if len(loss_args) < _least_arguments(self._loss):
            loss_args = [*predictions, *loss_args]
        loss = self._loss(*loss_args)
        mod = AppendLoss(
            self.BACKBONE_FUNC, loss, self._loss.num_backbone_outputs, self.BACKBONE_LOSS_FUNC
        )(mod)
        input_num = len(backbone.params) - param_num - state_num
        mod = relax.transform.DecomposeOpsForTraining(self.BACKBONE_LOSS_FUNC)(mod)
        trained = mod[self.BACKBONE_LOSS_FUNC].params[input_num : input_num + param_num]
        mod = relax.transform.Gradient(self.BACKBONE_LOSS_FUNC, require_grads=list(trained))(mod)
        self._optimizer.init(list(trained))
        step = self._optimizer.get_function()
        mod[self.OPTIMIZER_FUNC] = step.with_attr("global_symbol", self.OPTIMIZER_FUNC)
        mod = mod.with_attr("input_num", input_num)
        mod = mod.with_attr("optim_state", self._optimizer.state)
        return relax.transform.LegalizeOps()(mod) if self._legalize else mod
