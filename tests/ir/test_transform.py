# SPDX-License-Identifier: Apache-2.0
"""Passes, their context and their instruments."""

import pytest
import tvm
from tvm import ir, tir
from tvm.ir import instrument, transform


def _module():
    return ir.IRModule(
        {"f": tir.PrimFunc([], tir.Evaluate(0)), "g": tir.PrimFunc([], tir.Evaluate(1))}
    )


def _marker(name, **kwargs):
    @transform.module_pass(opt_level=kwargs.pop("opt_level", 0), name=name, **kwargs)
    def mark(mod, ctx):
        return mod.with_attr("trace", [*(mod.get_attr("trace") or []), name])

    return mark


def _trace(mod):
    return [str(s) for s in mod.get_attr("trace") or []]


def test_module_pass_and_sequential():
    seq = transform.Sequential([_marker("a"), _marker("b")])
    assert _trace(seq(_module())) == ["a", "b"]


def test_opt_level_required_and_disabled_passes():
    seq = transform.Sequential([_marker("a"), _marker("b", opt_level=3), _marker("c")])
    assert _trace(seq(_module())) == ["a", "c"]
    with transform.PassContext(opt_level=3):
        assert _trace(seq(_module())) == ["a", "b", "c"]
    with transform.PassContext(required_pass=["b"], disabled_pass=["c"]):
        assert _trace(seq(_module())) == ["a", "b"]


def test_function_pass():
    @tir.transform.prim_func_pass(opt_level=0)
    def rename(func, mod, ctx):
        return func.with_attr("seen", True)

    mod = rename(_module())
    assert all(f.attrs["seen"] for _, f in mod.items())


def test_a_class_as_pass():
    @transform.module_pass(opt_level=0)
    class Tag:
        def __init__(self, text):
            self.text = text

        def transform_module(self, mod, ctx):
            return mod.with_attr("tag", self.text)

    assert Tag("x")(_module()).get_attr("tag") == "x"


def test_apply_to_functions():
    @tir.transform.prim_func_pass(opt_level=0)
    def mark(func, mod, ctx):
        return func.with_attr("seen", True)

    mod = transform.ApplyPassToFunction(mark, "f")(_module())
    assert "seen" in mod["f"].attrs and "seen" not in mod["g"].attrs
    with pytest.raises(ValueError, match="that matches 'x'"):
        transform.ApplyPassToFunction(mark, "x", True)(_module())


def test_config_rejects_unknown_keys_and_wrong_types():
    configs = transform.PassContext.list_configs()
    assert all({"type", "default", "doc"} <= set(c) for c in configs.values())
    with pytest.raises(
        ValueError, match="expected the name of an option, got 'tir.disable_vectorise'"
    ):
        transform.PassContext(config={"tir.disable_vectorise": True})


def test_context_is_per_thread_and_nested():
    with transform.PassContext(opt_level=1) as outer:
        assert transform.PassContext.current().opt_level == 1
        with transform.PassContext(opt_level=3):
            assert transform.PassContext.current().opt_level == 3
        assert transform.PassContext.current().same_as(outer)
    assert transform.PassContext.current().opt_level == 2


def test_instruments_see_and_skip_passes():
    events = []

    @instrument.pass_instrument
    class Watch:
        def __init__(self, skip):
            self.skip = skip

        def enter_pass_ctx(self):
            events.append("enter")

        def exit_pass_ctx(self):
            events.append("exit")

        def should_run(self, mod, info):
            return info.name != self.skip

        def run_before_pass(self, mod, info):
            events.append(f"before {info.name}")

        def run_after_pass(self, mod, info):
            events.append(f"after {info.name}")

    with transform.PassContext(instruments=[Watch("b")]):
        mod = transform.Sequential([_marker("a"), _marker("b")])(_module())
    assert _trace(mod) == ["a"]
    assert events == [
        "enter", "before sequential", "before a", "after a", "after sequential", "exit",
    ]  # fmt: skip


def test_timing_table(tmp_path):
    timing = instrument.PassTimingInstrument()
    with transform.PassContext(instruments=[timing, instrument.DumpIR(tmp_path)]):
        transform.Sequential([_marker("a"), _marker("b")])(_module())
    table = timing.render()
    assert [line.split()[0] for line in table.splitlines()] == ["pass", "sequential", "a", "b"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "000_a.py",
        "001_b.py",
        "002_sequential.py",
    ]


def test_printing(capsys):
    with transform.PassContext(instruments=[instrument.PassPrintingInstrument(["a"], ["b"])]):
        transform.Sequential([_marker("a"), _marker("b")])(_module())
    out = capsys.readouterr().out
    assert out.startswith("Before a:") and "After b:" in out and "After a:" not in out


def test_errors_of_python_passes_keep_their_class():
    @transform.module_pass(opt_level=0)
    def fails(mod, ctx):
        raise KeyError("nothing here")

    with pytest.raises(KeyError, match="nothing here"):
        transform.Sequential([fails])(_module())

    @transform.module_pass(opt_level=0)
    def wrong(mod, ctx):
        return 3

    with pytest.raises(TypeError, match="expected the pass to return an IRModule, got int"):
        wrong(_module())
    assert tvm.transform.PassContext.current().opt_level == 2


@pytest.mark.parametrize("option", ["required_pass", "disabled_pass"])
def test_a_misspelt_pass_is_told_of(option, caplog):
    _marker("Tic_Tac_Toe")
    known = ["tir.Simplify", "tirx.UnrollLoop", "FoldConstant", "Tic_Tac_Toe", "my.other"]
    transform.PassContext(**{option: known})
    assert not caplog.text
    transform.PassContext(**{option: ["tir.Simplfy", "FoldConstants"]})
    assert f"{option}, got 'tir.Simplfy', did you mean 'tir.Simplify'?" in caplog.text
    assert "'FoldConstants', did you mean 'FoldConstant'?" in caplog.text


def _makers():
    from tvm import relax

    for package in (tir.transform, relax.transform):
        passes = {name for name in dir(package) if name[0].isupper()}
        for name in sorted(passes):
            make = getattr(package, name)
            if not isinstance(make, type):
                yield pytest.param(make, id=f"{package.__name__}.{name}")


@pytest.mark.parametrize("make", [*_makers()])
def test_a_program_is_no_option_of_a_pass(make):
    for program in (_module(), _module()["f"]):
        with pytest.raises(TypeError, match=rf"write {make.__name__}\(.*\)\(mod\)"):
            make(program)
