# SPDX-License-Identifier: Apache-2.0
"""Names of the reference interface below tvm.relax and tvm.topi are here, or it is said why not."""

import importlib
import pathlib
import re

NAMES = pathlib.Path(__file__).with_name("names.txt")

# {why: what is not here}, as regular expressions of module.name
NOT_HERE = {
    "converters of models are C++": [
        r"tvm\.relax\.frontend\.onnx\.onnx_frontend\..*",
        r"tvm\.relax\.frontend\.common\.autopad",
        r"tvm\.relax\.frontend\.torch\.\w+\.\w+\.create_(convert_map|input_vars)",
    ],
    "lowerings, passes and mutators are C++": [
        r"tvm\.relax\.transform\.legalize_ops\.(?!common)\w+(\.\w+)*",
        r"tvm\.relax\.transform\.fast_math\.FastMathCodeGenerator.*",
        r"tvm\.relax\.(transform|backend|training)(\.\w+)*\.transform_module",
        r"tvm\.relax\.transform\.\w+\.\w+\.(visit|transform)\w+",
        r"tvm\.relax\.transform\.lazy_transform_params\.(?!LazyTransformParams\b)\w+(\.\w+)*",
        r"tvm\.relax\.backend\.dispatch_\w+\.\w+Dispatcher.*",
        r"tvm\.relax\.training\.setup_trainer\.SetupTrainer\.[A-Z_]+",
        r"tvm\.relax\.testing\.transform\.InplaceOpportunity",
        r"tvm\.relax\.expr\.TEPlaceholderOp",
    ],
    "kernels of GPUs come from the default rules": [
        r"tvm\.relax\.backend\.gpu_generic\.(\w+\.)?(generic|gpu)_\w+",
        r"tvm\.topi\.gpu\b.*",
    ],
    "a code generator of its vendor": [
        r"tvm\.relax\.backend\.(contrib|metal)\b.*",
        r"tvm\.relax\.backend\.cuda\.flashinfer.*",
        r"tvm\.relax\.backend\.cuda\.(cudnn|cutlass)\.(WorkspaceAnnotator|annotate_workspace).*",
        r"tvm\.relax\.backend\.cuda\.cutlass\.attention_rewrite_patterns",
    ],
    "several processes": [
        r"tvm\.relax\.distributed\.transform.*",
        r"tvm\.relax\.transform\.(IPCAllReduceRewrite|ipc_allreduce_rewrite\..*)",
        r"tvm\.relax\.transform\.(LowerGPUIPCAllocStorage|lower_gpu_ipc_alloc_storage\..*)",
    ],
    "tvm.relax.transform.MetaScheduleTuneIRMod tunes": [
        r"tvm\.relax\.transform(\.transform)?\.FewShotTuning",
    ],
    "names of types and of imports": [
        r"tvm\.relax\..*\.(PrimExprLike|FType|CheckFunc|Pattern|ffi|py_print|to_dlpack_legacy)",
        r"tvm\.topi\.topi|tvm\.topi\..*\b(logger|Workload)",
        r"tvm\.topi\.cpp\.(cuda|generic|rocm|x86|vision\.yolo)",
    ],
    "networks of tests are inlined": [r"tvm\.relax\.testing\.nn\.Module\.define_subroutine"],
    "operators of one bit, and tricks of one schedule": [
        r"tvm\.topi\.nn\.(\w+\.)?(\w*winograd\w*|binar\w+|bitserial\w+|bitpack)",
        r"tvm\.topi\.nn\.(\w+\.)?(conv2d_NCHWc_(OIHWo|int8)|dense_pack|unpack_NCHWc_to_nchw)",
        r"tvm\.topi\.nn\.(\w+\.)?(depthwise_conv2d_(NCHWc|backward\w+)|conv2d_\w+_preprocess)",
        r"tvm\.topi\.nn\.(\w+\.)?(conv3d_\w+_preprocess|declaration_conv\w+)",
    ],
    "no operator of graphs is lowered to it": [
        r"tvm\.topi(\.\w+)?\.(binary_search|const_vector|fixed_point_multiply_per_axis|make_idx)",
        r"tvm\.topi(\.\w+)?\.(sparse_reshape|within_index)",
        r"tvm\.topi\.image\.(resize\.)?(get_\w+|can_convert_multiply_to_intdiv)",
        r"tvm\.topi\.nn\.(\w+\.)?(SQNN_\w+|simulated_(de)?quantize|POOL_TYPE_CODE)",
        r"tvm\.topi\.nn\.(\w+\.)?(correlation_nchw|lstm|get_pad\w+)",
        r"tvm\.topi\.utils\.\w+_layout",
        r"tvm\.topi\.vision\.(nms_util\.)?(binary_search|collect_\w+|run_\w+|calculate_overlap)",
        r"tvm\.topi\.testing\.(\w+\.)?(affine_grid|conv2d_backward|correlation|crop_and)_\w+",
        r"tvm\.topi\.testing\.(\w+\.)?(deformable|grid_sample|lstm|reorg|roi)_\w+",
        r"tvm\.topi\.testing\.(\w+\.)?(depthwise_conv2d_python_nchwc|dilate_np|resize3d_\w+)",
        r"tvm\.topi\.testing\.\w+\.(get_\w+|pad_tensor|adaptive_pool_channel_\w+)",
    ],
}


def names():
    text = re.sub(r"\n  ", " ", NAMES.read_text(encoding="utf-8"))
    for line in text.splitlines()[1:]:
        module, listed = line.split(": ")
        for name in listed.split():
            yield module, name


def is_here(module, name):
    try:
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


def test_names():
    reasons = [re.compile(row) for rows in NOT_HERE.values() for row in rows]
    missing = [f"{m}.{n}" for m, n in names() if not is_here(m, n)]
    unexplained = [name for name in missing if not any(r.fullmatch(name) for r in reasons)]
    assert not unexplained
    unused = [r.pattern for r in reasons if not any(r.fullmatch(name) for name in missing)]
    assert not unused, "what is here now"
