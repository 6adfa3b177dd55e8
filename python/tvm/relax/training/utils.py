# SPDX-License-Identifier: Apache-2.0
"""Gradients of tensor expressions, and losses appended to functions."""

import tvm_ffi

from tvm import relax
from tvm.ir.transform import Sequential, module_pass

_PREFIX = "tvm.relax.te_grad._register."


def register_te_gradient(te_grad_name, te_grad_func=None):
    """Registers `te_grad_func(output_grad, *inputs, **te_grad_kwargs)`, which gives the gradients
    of the inputs as tensor expressions, for calls with that te_grad_name; without it, a
    decorator."""

    def register(function):
        def gradient(orig_var, call, output_grad, ctx):
            kwargs = dict((call.attrs.te_grad_kwargs or {}).items())
            inputs = call.args[1].fields
            return ctx.call_te(
                function, output_grad, *inputs, primfunc_name_hint=te_grad_name, **kwargs
            )

        tvm_ffi.register_global_func(_PREFIX + te_grad_name, gradient, override=True)
        return function

    return register if te_grad_func is None else register(te_grad_func)


def AppendLoss(func_name, loss_function, num_backbone_outputs=1, new_func_name=None):
    """A function that computes a loss of another one's results.

    backbone(x) returns y; loss(y, t) returns l  ->  also backbone_loss(x, t), which returns l. The
    loss takes the first `num_backbone_outputs` results; further ones follow the loss in a tuple.
    """

    @module_pass(opt_level=0, name="AppendLoss")
    def append(mod, ctx):
        backbone = mod[func_name]
        name = new_func_name or f"{func_name}_loss"
        body = backbone.body.body
        results = len(body.fields) if isinstance(body, relax.Tuple) else 1
        if not 1 <= num_backbone_outputs <= min(results, len(loss_function.params)):
            raise ValueError(
                f"AppendLoss: expected num_backbone_outputs between 1 and {results}, the results "
                f"of '{func_name}', and at most {len(loss_function.params)}, the parameters of the "
                f"loss, got {num_backbone_outputs}"
            )
        targets = relax.utils.copy_with_new_vars(loss_function).params[num_backbone_outputs:]
        params = [*relax.utils.copy_with_new_vars(backbone).params, *targets]
        bb = relax.BlockBuilder(mod)
        loss = bb.add_func(loss_function.without_attr("global_symbol"), "loss")
        with bb.function(name, params, attrs=_other_attrs(backbone)):
            with bb.dataflow():
                call = relax.Call(mod.get_global_var(func_name), params[: len(backbone.params)])
                found = bb.emit(call)
                items = [found] if results == 1 else [bb.emit(found[i]) for i in range(results)]
                value = bb.emit(relax.Call(loss, [*items[:num_backbone_outputs], *targets]))
                rest = items[num_backbone_outputs:]
                outputs = [bb.emit_output(v) for v in (value, *rest)]
            bb.emit_func_output(outputs[0] if not rest else outputs)
        func = bb.get()[name].inline_functions({func_name: backbone, loss: loss_function})
        mod = mod.clone()
        mod[name] = func
        tidy = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination([name])]
        tidied = Sequential(tidy)(mod)
        mod[name] = tidied[name]
        return mod

    return append


def _other_attrs(func):
    return {k: v for k, v in (func.attrs or {}).items() if k != "global_symbol"}
