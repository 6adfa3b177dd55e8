# SPDX-License-Identifier: Apache-2.0
"""Targets: forms, tags, hosts, the current target."""

import pytest
import tvm
from tvm.target import Target


def test_llvm_is_this_machine():
    target = Target("llvm")
    assert target.kind.name == "llvm"
    assert target.attrs["num-cores"] >= 1
    assert list(target.keys) == ["cpu"]


def test_options_override_detection():
    target = Target("llvm -mcpu=x86-64-v3 -num-cores=3 -mattr=+avx2,-fma")
    assert target.mcpu == "x86-64-v3"
    assert target.attrs["num-cores"] == 3
    assert target.mattr == ["+avx2", "-fma"]


@pytest.mark.parametrize("kind", Target.list_kinds())
def test_every_kind_round_trips(kind):
    target = Target(kind)
    assert Target(str(target)) == target
    assert Target(target.export_json()) == target
    assert Target(dict(target.export().items())) == target
    assert set(target.kind.options) >= {"keys", "device", "model"}


def test_every_tag_parses():
    tags = tvm.target.list_tags()
    assert len(tags) >= 257
    assert tags["nvidia/nvidia-a100"].arch == "sm_80"
    assert tags["aws/cpu/c5.xlarge"].attrs["num-cores"] == 2
    assert tags["raspberry-pi/4b-aarch64"].host.mcpu == "cortex-a72"
    for name, target in tags.items():
        assert target.tag == name


def test_a_tag_can_be_added_once():
    made = tvm.target.register_tag(
        "test/my-board", {"kind": "llvm", "mcpu": "cortex-a53"}, override=True
    )
    assert made.mcpu == "cortex-a53" and Target("test/my-board") == made
    with pytest.raises(ValueError, match="exists"):
        tvm.target.register_tag("test/my-board", {"kind": "llvm"})


def test_native_is_this_machine():
    assert Target("llvm -mcpu=native") == Target("llvm")
    assert Target("llvm -mcpu=native -mattr=-avx2") == Target("llvm -mattr=-avx2")


def test_host():
    target = Target("cuda", host="llvm -mcpu=x86-64")
    assert target.host.mcpu == "x86-64"
    assert Target("cuda").host is None
    assert Target("cuda").with_host("c").host.kind.name == "c"
    assert Target.canon_target_and_host("cuda", "llvm")[1].kind.name == "llvm"


def test_several_targets():
    several = Target.canon_multi_target_and_host(["llvm", "cuda"], "llvm")
    assert [str(t.kind) for t in several] == ["llvm", "cuda"]
    assert all(str(t.host.kind) == "llvm" for t in several)
    with pytest.raises(ValueError, match="expected targets, got None"):
        Target.canon_multi_target_and_host(None)


def test_current():
    assert Target.current() is None
    with Target("cuda") as outer:
        assert Target.current() == outer
        with Target("llvm"):
            assert Target.current().kind.name == "llvm"
        assert Target.current() == outer
    with pytest.raises(ValueError, match="inside"):
        Target.current(allow_none=False)


def test_constructors():
    assert tvm.target.cuda(arch="sm_90").arch == "sm_90"
    assert tvm.target.arm_cpu("rasp4b").mcpu == "cortex-a72"
    assert tvm.target.riscv_cpu("sifive-u74").mcpu == "sifive-u74"
    assert tvm.target.hexagon("v68", num_cores=2).attrs["num-cores"] == 2
    assert tvm.target.stm32("stm32F7xx").mcpu == "cortex-m7"
    assert "adreno" in tvm.target.adreno().keys
    assert tvm.target.mali().attrs["device"] == "mali"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("lvm", ValueError, "expected the name of a target kind, got 'lvm', did you mean 'llvm'"),
        ("llvm -mcp=3", ValueError, "got 'mcp', did you mean 'mcpu'"),
        ("llvm -num-cores=x", TypeError, "expected an integer for option 'num-cores', got 'x'"),
        ("nvidia/nvidia-a10000", ValueError, "expected a target tag"),
        ('{"kind"', ValueError, "expected a JSON object"),
        ("llvm -mcpu", ValueError, "expected a value for option 'mcpu'"),
        ("llvm -mcpu=a -mcpu=b", ValueError, "once"),
        ("llvm 3", ValueError, "expected an option such as"),
        ("", ValueError, "expected the name of a kind"),
        ({"mcpu": "x"}, ValueError, "'kind'"),
        ({"kind": "llvm", "num-cores": "two"}, TypeError, "expected an integer"),
        (3, TypeError, "expected a string, dict or Target, got int"),
    ],
)
def test_bad_targets(text, error, message):
    with pytest.raises(error, match=message):
        Target(text)


def test_virtual_devices():
    device = tvm.target.VirtualDevice(tvm.cpu(0), "llvm", "global")
    assert device.target.kind.name == "llvm" and device.dlpack_device_type() == 1
    assert device == tvm.target.VirtualDevice(tvm.cpu(0), Target("llvm"), "global")
    assert tvm.target.VirtualDevice(target="cuda").dlpack_device_type() == 2
    assert tvm.target.VirtualDevice().dlpack_device_type() == 0


@pytest.mark.parametrize(
    "text",
    ["llvm --system-lib", "llvm -system-lib=1 -mcpu=x86-64-v3", "c --runtime=c --link-params=1",
     "cuda -system-lib", "llvm -executor aot -interface-api=c -unpacked-api=1"],
)  # fmt: skip
def test_options_of_old_targets_have_no_effect_and_say_so(text, caplog):
    option = text.split()[1].lstrip("-").split("=")[0]
    target = Target(text)
    assert f"the option '{option}' has no effect" in caplog.text
    assert option not in target.attrs and option not in str(target)
    assert ("-mcpu=x86-64-v3" in str(target)) == ("-mcpu" in text)
    caplog.clear()
    assert Target({"kind": text.split()[0], option: True}).kind.name == text.split()[0]
    assert f"the option '{option}' has no effect" in caplog.text
    with pytest.raises(ValueError, match="once, got it twice"):
        Target(f"llvm --{option}=1 --{option}=1")


def test_the_triple_as_old_versions_spell_it():
    target = Target("llvm -target=armv7l-linux-gnueabihf")
    assert target.attrs["mtriple"] == "armv7l-linux-gnueabihf"
    with pytest.raises(ValueError, match="got 'target'"):
        Target("cuda -target=armv7l-linux-gnueabihf")


def test_left_in_another_order():
    with pytest.raises(RuntimeError, match="^Target: expected targets to be left in the reverse"):
        Target("llvm").__exit__(None, None, None)
