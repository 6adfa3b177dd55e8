# SPDX-License-Identifier: Apache-2.0
"""Tuning the kernels of graphs."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.testing.features import host_target


@I.ir_module
class Mod:
    @R.function
    def main(x: R.Tensor((32, 32), "float32"), w: R.Tensor((32, 32), "float32")):
        with R.dataflow():
            a = R.nn.relu(R.matmul(x, w))
            b = R.nn.relu(R.matmul(a, w))
            c = R.sum(b, axis=1)
            R.output(c)
        return c


X, W = np.random.default_rng(0).standard_normal((2, 32, 32), "float32")
EXPECTED = np.maximum(np.maximum(X @ W, 0) @ W, 0).sum(1)


def test_a_task_for_each_kernel_weighted_by_calls():
    tasks = ms.relax_integration.extract_tasks(Mod, host_target())
    weights = {str(task.task_name): task.weight for task in tasks}
    assert sorted(weights.values()) == [1, 2]  # the products with their relu are one kernel
    assert ["matmul" in name for name, weight in weights.items() if weight == 2] == [True]
    bound = ms.relax_integration.extract_tasks(Mod, host_target(), {"w": W})
    assert sum(task.weight for task in bound) == 3


def test_tune_and_compile(tmp_path):
    target = tvm.target.Target(host_target())
    database = ms.relax_integration.tune_relax(
        Mod, {"w": W}, target, str(tmp_path), max_trials_global=8, num_trials_per_iter=4, seed=0
    )
    assert len(database) > 0
    executable = ms.relax_integration.compile_relax(database, Mod, target, {"w": W})
    vm = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_allclose(vm["main"](X).numpy(), EXPECTED, rtol=1e-4, atol=1e-4)
    with target:
        lowered = relax.transform.MetaScheduleApplyDatabase(str(tmp_path))(
            relax.kernels.lower(relax.transform.BindParams("main", {"w": W})(Mod), target)
        )
    assert any(f.attrs.get("tir.is_scheduled") for f in relax.kernels.kernels(lowered).values())


def test_the_pipeline_that_tunes(tmp_path):
    tuned = relax.get_pipeline(
        "static_shape_tuning", total_trials=4, target=host_target(), work_dir=str(tmp_path)
    )
    executable = tvm.compile(tuned(Mod), host_target())
    out = relax.VirtualMachine(executable, tvm.cpu())["main"](X, W)
    np.testing.assert_allclose(out.numpy(), EXPECTED, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"valid_count": 3, "benchmark": True}])
def test_schedules_that_are_drawn(options):
    target = tvm.target.Target(host_target())
    with target:
        drawn = relax.transform.FewShotTuning(**options)(relax.kernels.lower(Mod, target))
    kernels = relax.kernels.kernels(drawn)
    assert all(func.attrs["tir.is_scheduled"] for func in kernels.values())
    out = relax.VirtualMachine(tvm.compile(drawn, target), tvm.cpu())["main"](X, W)
    np.testing.assert_allclose(out.numpy(), EXPECTED, rtol=1e-4, atol=1e-4)
    # What is scheduled stays what it is.
    with target:
        again = relax.transform.FewShotTuning()(drawn)
    tvm.ir.assert_structural_equal(again, drawn)


def test_no_schedules_are_drawn():
    @R.function
    def main(x: R.Tensor(("n", 4))):
        return R.add(x, x)

    mod = relax.transform.LegalizeOps()(tvm.IRModule.from_expr(main))
    with tvm.target.Target(host_target()):
        tvm.ir.assert_structural_equal(relax.transform.FewShotTuning()(mod), mod)
    with pytest.raises(ValueError, match="FewShotTuning: expected a positive valid_count, got 0"):
        relax.transform.FewShotTuning(0)
