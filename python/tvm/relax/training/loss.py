# SPDX-License-Identifier: Apache-2.0
"""Losses: functions of predictions and targets that return a scalar."""

from tvm import relax
from tvm.relax import op

_REDUCTIONS = ("mean", "sum", "none")


def _var(name, info):
    return relax.Var(name, info.struct_info if isinstance(info, relax.Var) else info)


class Loss:
    """A loss: called with the struct info of its arguments, it gives the function."""

    def __init__(self, loss_name, num_backbone_outputs, reduction="mean"):
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{loss_name}: expected reduction mean, sum or none, got {reduction}")
        self._loss_name, self._reduction = loss_name, reduction
        self._num_backbone_outputs = num_backbone_outputs

    @property
    def num_backbone_outputs(self):
        """How many results of the model the loss takes."""
        return self._num_backbone_outputs

    def _reduced(self, expr):
        if self._reduction == "none":
            return expr
        return op.sum(expr) if self._reduction == "sum" else op.mean(expr)

    def _function(self, params, body):
        bb = relax.BlockBuilder()
        with bb.function(self._loss_name, params):
            with bb.dataflow():
                result = bb.emit_output(body(*params))
            bb.emit_func_output(result)
        return bb.get()[self._loss_name]


class L1Loss(Loss):
    """The absolute difference."""

    def __init__(self, reduction="mean"):
        super().__init__("l1_loss", 1, reduction)

    def __call__(self, predictions, targets):
        params = [_var("predictions", predictions), _var("targets", targets)]
        return self._function(params, lambda p, t: self._reduced(op.abs(op.subtract(p, t))))


class MSELoss(Loss):
    """The squared difference."""

    def __init__(self, reduction="mean"):
        super().__init__("mse_loss", 1, reduction)

    def __call__(self, predictions, targets):
        params = [_var("predictions", predictions), _var("targets", targets)]
        return self._function(params, lambda p, t: self._reduced(op.square(op.subtract(p, t))))


class CrossEntropyLoss(Loss):
    """The negative logarithm of the softmax of predictions at the target classes."""

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions, targets, weights=None):
        params = [_var("predictions", predictions), _var("targets", targets)]
        if weights is not None:
            params.append(_var("weights", weights))
        axis = 0 if params[0].struct_info.ndim == 1 else 1

        def body(p, t, w=None):
            logits = op.nn.log_softmax(p, axis)
            return op.nn.nll_loss(logits, t, w, self._reduction, self.ignore_index)

        return self._function(params, body)


class CategoricalCrossEntropyLoss(Loss):
    """The cross entropy of predictions and target probabilities, of which each row is one case."""

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__("categorical_cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions, targets, weights=None):
        params = [_var("predictions", predictions), _var("targets", targets)]
        if weights is not None:
            params.append(_var("weights", weights))
        classes = params[0].struct_info.shape[-1]

        def body(p, t, w=None):
            if self.ignore_index >= 0:
                ignored = op.one_hot(
                    relax.const(self.ignore_index, "int64"),
                    relax.PrimValue(0.0), relax.PrimValue(1.0), int(classes), -1,
                )  # fmt: skip
                t = op.multiply(t, op.astype(ignored, str(p.struct_info.dtype)))
            terms = op.multiply(op.nn.log_softmax(p, -1), t)
            if w is not None:
                terms = op.multiply(terms, w)
            return self._reduced(op.negative(op.sum(terms, axis=-1)))

        return self._function(params, body)
