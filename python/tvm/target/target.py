# SPDX-License-Identifier: Apache-2.0
"""Target, and functions that make common ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import tvm_ffi

from tvm._derive import Node, fill, register_node

# What stands for a target, and options added to one.
TargetLike: TypeAlias = "str | dict[str, Any] | Target"
Options: TypeAlias = "str | list[str] | None"

_target, _ = fill("tvm.target")


@register_node("target.TargetKind")
class TargetKind(Node):
    @property
    def options(self) -> dict[str, str]:
        """{option: type} of this kind."""
        return TargetKind.options_from_name(self.name)

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        """{option: type} of a kind."""
        return {str(k): str(v) for k, v in _target("KindOptions")(kind_name).items()}

    def __str__(self):
        return str(self.name)


# Instructions that ARM's microcontrollers have, by the names of the processors.
_MICROCONTROLLERS = {
    "dsp": {f"cortex-m{n}" for n in ("4", "7", "33", "35p", "52", "55", "85")},
    "mve": {f"cortex-m{n}" for n in ("52", "55", "85")},
}


class TargetFeatures:
    """`target.features.has_avx512f`: whether a feature is on."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def __getattr__(self, name):
        feature = name.removeprefix("has_").removeprefix("is_")
        if feature == "aarch64":
            return str(self.target.attrs.get("mtriple", "")).startswith(("aarch64", "arm64"))
        if feature in _MICROCONTROLLERS and str(self.target.mcpu).startswith("cortex-m"):
            return str(self.target.mcpu) in _MICROCONTROLLERS[feature]
        aliases = {"asimd": "neon", "fp16_simd": "fullfp16", "matmul_i8": "i8mm"}
        return self.target.has_feature(aliases.get(feature, feature))


@register_node("target.Target")
class Target(Node):
    """A target: from a string ("llvm -mcpu=znver4"), a tag ("nvidia/nvidia-h100"), a dict, JSON."""

    def __init__(self, target: TargetLike, host: TargetLike | None = None) -> None:
        if isinstance(target, dict):
            target = {k: v for k, v in target.items() if v is not None}
        elif not isinstance(target, (str, Target)):
            raise TypeError(
                f"Target: expected a string, dict or Target, got {type(target).__name__}"
            )
        made = _target("Target_")(target)
        if host is not None:
            made = made.with_host_(host if isinstance(host, Target) else Target(host))
        # The handle of what was made elsewhere becomes that of this object.
        self.__init_handle_by_constructor__(tvm_ffi.convert(lambda: made))

    def __enter__(self):
        _target("EnterTarget")(self)
        return self

    def __exit__(self, ptype, value, trace):
        _target("ExitTarget")(self)

    def __str__(self):
        return str(self.str_())

    def __repr__(self):
        return str(self)

    def __eq__(self, other):
        return isinstance(other, Target) and self.export_json() == other.export_json()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.export_json())

    def export_json(self) -> str:
        """The JSON form as text; Target(text) reads it."""
        return json.dumps(_plain(self.export()), sort_keys=True)

    def with_host(self, host: TargetLike | None = None) -> Target:
        """A copy with another host."""
        return self if host is None else self.with_host_(Target.canon_target(host))

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device of this machine."""
        from .detect_target import detect_target_from_device

        return detect_target_from_device(device)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The innermost `with target:`."""
        target = _target("CurrentTarget")()
        if target is None and not allow_none:
            raise ValueError("Target.current: expected to be inside `with target:`")
        return target

    @property
    def features(self) -> TargetFeatures:
        return TargetFeatures(self)

    @property
    def libs(self) -> list[str]:
        return [str(x) for x in self.attrs.get("libs", [])]

    @property
    def mattr(self) -> list[str]:
        return [str(x) for x in self.attrs.get("mattr", [])]

    def get_kind_attr(self, attr_name: str) -> Any:
        """An attribute of the kind, or None."""
        return getattr(self.kind, attr_name, None)

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds."""
        return [str(name) for name in _target("ListTargetKinds")()]

    @staticmethod
    def canon_target(target: TargetLike | None) -> Target | None:
        """A Target of what stands for one; None stays None."""
        return target if target is None or isinstance(target, Target) else Target(target)

    @staticmethod
    def canon_target_and_host(
        target: TargetLike | None, target_host: TargetLike | None = None
    ) -> tuple[Target | None, Target | None]:
        """(target with its host, host)"""
        target = Target.canon_target(target)
        target_host = Target.canon_target(target_host)
        if target is not None and target_host is not None:
            target = target.with_host(target_host)
        return target, target_host if target is None else target.host

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> list[Target | None] | None:
        if multi_targets is None:
            return None
        if isinstance(multi_targets, (list, tuple, tvm_ffi.Array)):
            return [Target.canon_target(t) for t in multi_targets]
        if isinstance(multi_targets, dict) and "kind" not in multi_targets:
            return [Target.canon_target(t) for t in multi_targets.values()]
        return [Target.canon_target(multi_targets)]

    @staticmethod
    def canon_multi_target_and_host(
        target: Any, target_host: TargetLike | None = None
    ) -> list[Target | None]:
        targets = Target.canon_multi_target(target)
        if targets is None:
            raise ValueError("canon_multi_target_and_host: expected targets, got None")
        return [Target.canon_target_and_host(t, target_host)[0] for t in targets]

    @staticmethod
    def canon_target_map_and_host(
        target_map: Mapping[Any, TargetLike], target_host: TargetLike | None = None
    ) -> tuple[dict[Any, Target | None], Target | None]:
        made = {k: Target.canon_target_and_host(t, target_host)[0] for k, t in target_map.items()}
        return made, Target.canon_target(target_host)

    @staticmethod
    def target_or_current(target: TargetLike | None) -> Target:
        """The target given, else the current one."""
        target = Target.canon_target(target) or Target.current()
        if target is None:
            raise ValueError("expected a target, got None outside `with target:`")
        return target


def _attribute(name, fallback=None):
    def get(self):
        value = self.attrs.get(_OPTION_OF.get(name, name), fallback)
        return str(value) if isinstance(value, str) else value

    return property(get)


# Attributes that are called otherwise than the option they give.
_OPTION_OF = {"vtcm_capacity": "vtcm-capacity", "device_name": "device"}

for _name, _fallback in {
    "arch": None,
    "max_num_threads": None,
    "max_block_size_x": None,
    "max_block_size_y": None,
    "thread_warp_size": None,
    "max_shared_memory_per_block": None,
    "max_function_args": 0,
    "vtcm_capacity": 0,
    "device_name": "",
    "model": "unknown",
    "mcpu": "",
    "supports_integer_dot_product": False,
    "supports_cooperative_matrix": False,
    "l2_cache_size_bytes": 0,
}.items():
    setattr(Target, _name, _attribute(_name, _fallback))


def _plain(value):
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (tvm_ffi.Map, dict)):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (tvm_ffi.Array, list, tuple)):
        return [_plain(v) for v in value]
    return value


def create(target: TargetLike) -> Target:
    """A target: the old spelling of Target(...)."""
    return Target(target)


def _with_options(base, options):
    options = options or []
    return Target(" ".join([base, *(options if isinstance(options, list) else [options])]))


def cuda(model: str = "unknown", arch: str | None = None, options: Options = None) -> Target:
    """A CUDA target."""
    return _with_options(f"cuda -model={model}" + (f" -arch={arch}" if arch else ""), options)


def rocm(model: str = "unknown", options: Options = None) -> Target:
    """A ROCm target."""
    return _with_options(f"rocm -model={model}", options)


def mali(model: str = "unknown", options: Options = None) -> Target:
    """A Mali GPU."""
    return _with_options(f"opencl -device=mali -model={model}", options)


def bifrost(model: str = "unknown", options: Options = None) -> Target:
    """A Mali GPU of the Bifrost family."""
    return _with_options(f"opencl -device=bifrost -model={model}", options)


def intel_graphics(model: str = "unknown", options: Options = None) -> Target:
    """An Intel GPU."""
    return _with_options(
        f"opencl -device=intel_graphics -model={model} -thread_warp_size=16", options
    )


def adreno(
    model: str = "unknown", options: Options = None, cfg: str | None = None, backend: str = "opencl"
) -> Target:
    """An Adreno GPU; `cfg` is None, "texture" or "clml"."""
    keys = ["adreno", backend, "gpu", *([cfg] if cfg else [])]
    return _with_options(f"{backend} -device=adreno -model={model} -keys={','.join(keys)}", options)


_ARM_BOARDS = {
    "pixel2": "arm/pixel2",
    "mate10": "arm/mate10",
    "mate10pro": "arm/mate10",
    "p20": "arm/mate10",
    "p20pro": "arm/mate10",
    "rasp3b": "arm/rasp3b",
    "rasp4b": "arm/rasp4b",
    "rasp4b64": "arm/rasp4b64",
    "rk3399": "arm/rk3399",
    "pynq": "arm/pynq",
    "ultra96": "arm/ultra96",
    "beagleai": "arm/beagleai",
    "stm32mp1": "arm/stm32mp1",
    "thunderx": "arm/thunderx",
}


def _of_tag(tag, options):
    """A tag's target with more options."""
    return _with_options(str(Target(tag)), options)


def arm_cpu(model: str = "unknown", options: Options = None) -> Target:
    """An ARM CPU, by the name of its board."""
    if model in _ARM_BOARDS:
        return _of_tag(_ARM_BOARDS[model], options)
    return _with_options(f"llvm -device=arm_cpu -model={model} -keys=arm_cpu,cpu", options)


def rasp(options: Options = None) -> Target:
    """A Raspberry Pi 3."""
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: Options = None) -> Target:
    """A RISC-V CPU."""
    return _of_tag(f"riscv/{model}", options)


def hexagon(cpu_ver: str = "v68", **kwargs: Any) -> Target:
    """A Hexagon DSP."""
    config = _plain(Target(f"qcom/hexagon-{cpu_ver}").export())
    renamed = {k.replace("_", "-"): v for k, v in kwargs.items()}
    return Target({**config, **renamed})


def stm32(series: str = "unknown", options: Options = None) -> Target:
    """An STM32 microcontroller, by its series: "stm32F7xx"."""
    cpus = {
        "stm32H7xx": "cortex-m7",
        "stm32F7xx": "cortex-m7",
        "stm32F4xx": "cortex-m4",
        "stm32F3xx": "cortex-m4",
        "stm32F2xx": "cortex-m3",
        "stm32F1xx": "cortex-m3",
        "stm32F0xx": "cortex-m0",
        "stm32L0xx": "cortex-m0",
        "stm32L1xx": "cortex-m3",
        "stm32L4xx": "cortex-m4",
        "stm32L5xx": "cortex-m33",
        "stm32U5xx": "cortex-m33",
    }
    if series not in cpus:
        raise ValueError(f"stm32: expected a series of {sorted(cpus)}, got '{series}'")
    return _with_options(f"c -keys=arm_cpu,cpu -device=arm_cpu -mcpu={cpus[series]}", options)
