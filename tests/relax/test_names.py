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
    "names of types and of imports": [
        r"tvm\.relax\..*\.(PrimExprLike|FType|CheckFunc|Pattern|ffi|py_print|to_dlpack_legacy)",
        r"tvm\.topi\.topi|tvm\.topi\..*\b(logger|Workload)",
        r"tvm\.topi\.cpp\.(cuda|generic|rocm|x86|vision\.yolo)",
    ],
    "networks of tests are inlined": [r"tvm\.relax\.testing\.nn\.Module\.define_subroutine"],
    "operators of one bit, and transforms of one schedule": [
        r"tvm\.topi\.nn\.(\w+\.)?(\w*winograd\w*|binar\w+|bitserial\w+|bitpack)",
    ],
    "parts of functions that are C++": [
        r"tvm\.topi\.image\.(resize\.)?(get_\w+|can_convert_multiply_to_intdiv)",
        r"tvm\.topi\.vision\.(nms_util\.)?(binary_search|collect_\w+|run_\w+|calculate_overlap)",
    ],
    "parts of references": [
        r"tvm\.topi\.testing\.(\w+\.)?(dilate_np|reorg_\w+|resize3d_(?!python)\w+|roi_align_common)",
        r"tvm\.topi\.testing\.\w+\.(get_\w+|pad_tensor|adaptive_pool_channel_\w+|grid_sample_[23]d)",
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
