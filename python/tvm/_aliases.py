# SPDX-License-Identifier: Apache-2.0
"""All spellings that lead to a name defined elsewhere: neighbouring versions of the interface, and
shortcuts."""

import functools
import importlib
import importlib.machinery
import sys
import types

_SUPPORT = ("cc", "clang", "emcc", "ndk", "nvcc", "popen_pool", "rocm", "tar", "utils", "xcode")

# parameter -> the same in versions since 0.27, where what was struct info is the type of a value
KEYWORDS = {
    "annotate_struct_info": "annotate_ty",
    "check_struct_info": "check_ty",
    "include_struct_info_annotations": "include_ty_annotations",
    "out_sinfo": "out_ty",
    "ret_struct_info": "ret_ty",
    "show_all_struct_info": "show_all_ty",
    "sinfo": "ty",
    "sinfo_args": "ty_args",
    "struct_info": "ty",
}

# Of single functions: theirs -> ours.
KEYWORDS_OF = {
    "tir.ceildiv": {"lhs": "a", "rhs": "b"},
    "tir.fmod": {"x": "x1", "y": "x2"},
    "topi.logical_not": {"data": "x"},
    "topi.bitwise_not": {"data": "x"},
    "topi.left_shift": {"x": "lhs", "n": "rhs"},
    "topi.right_shift": {"x": "lhs", "n": "rhs"},
}

_SCHEDULED = (
    "analysis",
    "data_layout",
    "pipeline",
    "schedule",
    "stmt",
    "tensor_intrin",
    "transform",
)

# What every printed text of 0.27 imports, and few use.
UNUSED_IMPORTS = ("tvm.tirx.layout.Axis",)

# module -> the module it is
MODULES = {
    **{f"tvm.contrib.{name}": f"tvm.support.{name}" for name in _SUPPORT},
    "tvm.contrib.graph_executor": "tvm.relay.graph_executor",
    "tvm.contrib.tvmjs": "tvm.runtime.tensor_cache",
    "tvm.instrument": "tvm.ir.instrument",
    "tvm.container": "tvm.ir.container",
    "tvm.transform": "tvm.ir.transform",
    "tvm.tirx": "tvm.tir",
    "tvm.sym": "tvm.arith",
    "tvm.script.tirx": "tvm.script.parser.tir",
    **{f"tvm.s_tir.{name}": f"tvm.tir.{name}" for name in _SCHEDULED},
    "tvm.s_tir.dlight": "tvm.dlight",
    "tvm.tir.analysis.analysis": "tvm.tir.analysis",
    "tvm.tir.transform.function_pass": "tvm.tir.transform",
    "tvm.tir.transform.transform": "tvm.tir.transform",
    "tvm.s_tir.sblock_scope": "tvm.tir.block_scope",
    "tvm.s_tir.sblock_dependence_info": "tvm.tir.block_dependence_info",
    "tvm.s_tir.meta_schedule": "tvm.meta_schedule",
    "tvm.ffi": "tvm_ffi",
    "tvm.script.tir": "tvm.script.parser.tir",
    "tvm.script.ir": "tvm.script.parser.ir",
    "tvm.script.relax": "tvm.script.parser.relax",
    "tvm.tirx.script": "tvm.script.parser.tir",
    "tvm.relax.script": "tvm.script.parser.relax",
    "tvm.relax.type": "tvm.relax",
    "tvm.runtime.ndarray": "tvm.nd",
}

# The classes of a family are in one module; these names of modules stand for it.
_TUNING = {
    "builder": "builder local_builder",
    "cost_model": "cost_model",
    "database": "database memory_database union_database ordered_union_database "
    "schedule_fn_database",
    "feature_extractor": "feature_extractor per_store_feature random_feature_extractor",
    "measure_callback": "measure_callback add_to_database remove_build_artifact update_cost_model",
    "mutator": "mutator mutate_compute_location mutate_parallel mutate_thread_binding "
    "mutate_tile_size mutate_unroll",
    "post_optimization": "droplet post_opt space",
    "postproc": "postproc disallow_async_strided_mem_copy disallow_dynamic_loop "
    "rewrite_cooperative_fetch rewrite_layout rewrite_parallel_vectorize_unroll "
    "rewrite_reduction_block rewrite_tensorize rewrite_unbound_block verify_gpu_code "
    "verify_vtcm_limit",
    "runner": "runner",
    "schedule_rule": "schedule_rule add_rfactor apply_custom_rule auto_bind auto_inline "
    "cross_thread_reduction multi_level_tiling parallel_vectorize_unroll random_compute_location",
    "search_strategy": "search_strategy evolutionary_search replay_func replay_trace",
    "space_generator": "space_generator post_order_apply schedule_fn space_generator_union",
    "task_scheduler": "task_scheduler gradient_based round_robin",
}
MODULES |= {
    f"tvm.meta_schedule.{family}.{module}": f"tvm.meta_schedule.{family}"
    for family, modules in _TUNING.items()
    for module in modules.split()
}

_RELAX_OP = (
    "base binary create datatype index linear_algebra manipulate mask qdq sampling search set "
    "sorting statistical ternary unary"
)
MODULES |= {
    "tvm.relax.analysis.analysis": "tvm.relax.analysis",
    "tvm.relax.distributed.global_info": "tvm.relax.distributed",
    "tvm.relax.distributed.struct_info": "tvm.relax.distributed",
}
MODULES |= {f"tvm.relax.op.{module}": "tvm.relax.op" for module in _RELAX_OP.split()}
# Passes are in one module, stages of pipelines in that of their target.
_RELAX_TRANSFORM = (
    "attach_external_modules fast_math fold_batch_norm_to_conv2d_for_inference "
    "fuse_transpose_matmul lazy_transform_params optimize_layout_transform "
    "remove_redundant_reshape transform"
)
MODULES |= {
    f"tvm.relax.transform.{module}": "tvm.relax.transform" for module in _RELAX_TRANSFORM.split()
}
MODULES |= {
    f"tvm.relax.backend.{target}.pipeline": f"tvm.relax.backend.{target}"
    for target in ("adreno", "cpu_generic", "cuda", "gpu_generic", "rocm")
}
MODULES |= {
    "tvm.relax.transform.legalize_ops.common": "tvm.relax.transform.legalize_ops",
    "tvm.relax.backend.dispatch_sampling": "tvm.relax.backend",
    "tvm.relax.backend.dispatch_sort_scan": "tvm.relax.backend",
}
MODULES |= {
    f"tvm.relax.op.{group}.{module}": f"tvm.relax.op.{group}"
    for group, module in (
        *((name, name) for name in ("builtin", "ccl", "distributed", "grad", "image", "memory")),
        *(("memory", "view"), ("nn", "nn"), ("vision", "nms"), ("vm", "vm")),
    )
}
# Functions of operators are in one module per package; these names of modules stand for it.
_TOPI = {
    "tvm.topi": "broadcast cpp einsum index_put math reduction scan scatter scatter_elements "
    "searchsorted signal slice_scatter sort sparse_reshape tensor transform",
    "tvm.topi.image": "dilation2d grid_sample resize",
    "tvm.topi.nn": "batch_matmul batch_norm batch_to_space_nd conv1d conv1d_transpose conv2d "
    "conv2d_transpose conv3d conv3d_transpose correlation deformable_conv2d dense "
    "depth_to_space depthwise_conv2d dilate elemwise fifo_buffer flatten group_norm "
    "instance_norm layer_norm local_response_norm loss lstm mapping pad pixel_shuffle pooling qnn "
    "rms_norm softmax space_to_batch_nd space_to_depth upsampling",
    "tvm.topi.testing": "adaptive_pool_python attention_python batch_matmul batch_norm "
    "batch_to_space_nd conv1d_ncw_python conv1d_transpose_ncw_python "
    "conv2d_backcward_weight_python conv2d_hwcn_python conv2d_nchw_python conv2d_nhwc_python "
    "conv2d_transpose_python conv3d_ncdhw_python conv3d_ndhwc_python "
    "conv3d_transpose_ncdhw_python correlation_nchw_python crop_and_resize_python "
    "deformable_conv2d_python dense depth_to_space depthwise_conv2d_python dilate_python "
    "gather_nd_python gather_python grid_sample_python group_norm_python instance_norm_python "
    "l2_normalize_python layer_norm_python lrn_python lstm_python matrix_set_diag nll_loss "
    "one_hot pool_grad_python poolnd_python resize_python rms_norm_python roi_align_python "
    "roi_pool_python searchsorted sequence_mask_python slice_axis_python softmax_python "
    "space_to_batch_nd space_to_depth strided_slice_python",
    "tvm.topi.vision": "nms",
}
MODULES |= {
    f"{package}.{name}": package for package, names in _TOPI.items() for name in names.split()
}

_DEVICES = (
    "cpu",
    "cuda",
    "rocm",
    "opencl",
    "metal",
    "vpi",
    "vulkan",
    "ext_dev",
    "hexagon",
    "webgpu",
)

# The object layer, as packages of versions before 0.20.
_FFI_NAMES = {
    "DataType": "tvm_ffi.dtype",
    "Function": "tvm_ffi.Function",
    "Object": "tvm_ffi.Object",
    "TVMError": "tvm.base.TVMError",
    "convert": "tvm._derive.convert",
    "get_global_func": "tvm_ffi.get_global_func",
    "list_global_func_names": "tvm_ffi.registry.list_global_func_names",
    "register_error": "tvm_ffi.register_error",
    "register_func": "tvm_ffi.register_global_func",
    "register_object": "tvm_ffi.register_object",
    "remove_global_func": "tvm_ffi.remove_global_func",
}

# module -> {name in it: where it is defined}
NAMES = {
    "tvm._ffi": _FFI_NAMES,
    "tvm._ffi.base": {"TVMError": "tvm.base.TVMError"},
    "tvm._ffi.registry": {
        name: target for name, target in _FFI_NAMES.items() if name.endswith(("func", "names"))
    },
    "tvm._ffi.runtime_ctypes": {
        "DataType": "tvm_ffi.dtype",
        "DataTypeCode": "tvm_ffi._dtype.DataTypeCode",
        "Device": "tvm.runtime.Device",
    },
    "tvm": {
        "register_object": "tvm_ffi.register_object",
        "register_global_func": "tvm_ffi.register_global_func",
        "register_func": "tvm_ffi.register_global_func",
        "get_global_func": "tvm_ffi.get_global_func",
        "remove_global_func": "tvm_ffi.remove_global_func",
        "list_global_func_names": "tvm_ffi.registry.list_global_func_names",
        "register_error": "tvm_ffi.register_error",
        "convert": "tvm._derive.convert",
        "Object": "tvm_ffi.Object",
        "DataType": "tvm_ffi.dtype",
        "DataTypeCode": "tvm_ffi._dtype.DataTypeCode",
        "Device": "tvm.runtime.Device",
        "TVMError": "tvm.base.TVMError",
        "device": "tvm.runtime.device",
        "device_from_target": "tvm.runtime.device",
        **{name: f"tvm.runtime.{name}" for name in _DEVICES},
        "IRModule": "tvm.ir.IRModule",
        "build": "tvm.driver.build",
        "compile": "tvm.driver.compile",
    },
    "tvm.arith.int_set": {
        name: f"tvm.arith.{name}"
        for name in (
            "estimate_region_lower_bound",
            "estimate_region_strict_bound",
            "estimate_region_upper_bound",
        )
    },
    "tvm.relax.op": {
        "all_class_non_max_suppression": "tvm.relax.op.vision.all_class_non_max_suppression"
    },
    "tvm.arith.int_solver": {"IntConstraintsTransform": "tvm.arith.IntConstraintsTransform"},
    "tvm.runtime.container": {
        "String": "tvm_ffi.core.String",
        "ShapeTuple": "tvm_ffi.Shape",
    },
    "tvm.s_tir": {
        **{
            name: f"tvm.tir.{name}"
            for name in ("MatchBufferRegion", "Schedule", "ScheduleError", "TensorIntrin")
        },
        **{
            name: f"tvm.tir.schedule.{name}"
            for name in ("BlockRV", "LoopRV", "ScheduleState", "StmtSRef", "Trace")
        },
        "SBlock": "tvm.tir.Block",
        "SBlockDependenceInfo": "tvm.tir.block_dependence_info.BlockDependenceInfo",
        "renew_defs": "tvm.tir.stmt_functor.renew_defs",
        "SBlockRealize": "tvm.tir.BlockRealize",
        "SBlockRV": "tvm.tir.schedule.BlockRV",
        "SBlockScope": "tvm.tir.schedule.BlockScope",
        "SLayout": "tvm.tir.Layout",
        "SBijectiveLayout": "tvm.tir.BijectiveLayout",
        "slayout": "tvm.tir.layout",
        "sbijective_layout": "tvm.tir.bijective_layout",
    },
    "tvm.target.intrin": {"register_intrin_lowering": "tvm.ir.register_intrin_lowering"},
    "tvm.runtime.packed_func": {"PackedFunc": "tvm_ffi.Function"},
    "tvm.runtime.object_generic": {
        "const": "tvm.tir.const",
        "ObjectGeneric": "tvm_ffi.ObjectConvertible",
    },
    "tvm.runtime.support": {"derived_object": "tvm.meta_schedule.derived_object"},
    "tvm.runtime.object": {"Object": "tvm_ffi.Object"},
    "tvm.tir": {
        "SBlock": "tvm.tir.Block",
        "SBlockRealize": "tvm.tir.BlockRealize",
        "SBlockRV": "tvm.tir.schedule.BlockRV",
        "SBlockScope": "tvm.tir.schedule.BlockScope",
        "BlockDependenceInfo": "tvm.tir.block_dependence_info.BlockDependenceInfo",
    },
    "tvm.tir.analysis": {
        "find_anchor_sblock": "tvm.tir.analysis.find_anchor_block",
        "get_sblock_access_region": "tvm.tir.analysis.get_block_access_region",
        "get_sblock_read_write_region": "tvm.tir.analysis.get_block_read_write_region",
    },
    "tvm.tir.transform": {
        "CommonSubexprElim": "tvm.tir.transform.CommonSubexprElimTIR",
        "PrimFuncPass": "tvm.tir.transform._PrimFuncPass",
        "StmtSimplify": "tvm.tir.transform.Simplify",
        "StmtSimplifyConfig": "tvm.tir.transform.SimplifyConfig",
    },
    "tvm.tir.schedule": {
        "SBlockRV": "tvm.tir.schedule.BlockRV",
        "SBlockScope": "tvm.tir.schedule.BlockScope",
    },
    "tvm.relax": {
        "AnyType": "tvm.relax.ObjectStructInfo",
        "VDevice": "tvm.ir.VDevice",
        "DummyGlobalInfo": "tvm.ir.DummyGlobalInfo",
    },
    "tvm.relax.analysis": {
        "check_well_formed": "tvm.relax.analysis.well_formed",
        "definable_tir_vars_in_type": "tvm.relax.analysis.definable_tir_vars_in_struct_info",
        "derive_call_ret_type": "tvm.relax.analysis.derive_call_ret_struct_info",
        "tir_vars_in_type": "tvm.relax.analysis.tir_vars_in_struct_info",
        "type_base_check": "tvm.relax.analysis.struct_info_base_check",
        "type_lca": "tvm.relax.analysis.struct_info_lca",
    },
    "tvm.relax.dpl": {"TypePattern": "tvm.relax.dpl.StructInfoPattern"},
    "tvm.relax.transform": {"UpdateParamType": "tvm.relax.transform.UpdateParamStructInfo"},
    "tvm.topi": {"ndarray_size": "tvm.topi.tensor_size"},
    "tvm.nd": {
        "array": "tvm.runtime.tensor",
        "empty": "tvm.runtime.empty",
        "NDArray": "tvm.runtime.Tensor",
        "from_dlpack": "tvm.runtime.from_dlpack",
        "device": "tvm.runtime.device",
        **{name: f"tvm.runtime.{name}" for name in _DEVICES},
    },
    "tvm.runtime": {
        "ndarray": "tvm.nd",
        "device_from_target": "tvm.runtime.device",
        "NDArray": "tvm.runtime.Tensor",
        "PackedFunc": "tvm_ffi.Function",
        "ShapeTuple": "tvm_ffi.Shape",
        "String": "tvm_ffi.core.String",
        "Object": "tvm_ffi.Object",
        "ObjectConvertible": "tvm_ffi.ObjectConvertible",
        "DataType": "tvm_ffi.dtype",
        "DataTypeCode": "tvm_ffi._dtype.DataTypeCode",
        "ObjectGeneric": "tvm_ffi.ObjectConvertible",
        "convert": "tvm._derive.convert",
        "system_lib": "tvm_ffi.system_lib",
        "const": "tvm.tir.const",
        "num_threads": "tvm.runtime.NumThreads",
        "Report": "tvm.runtime.profiling.Report",
        "Scriptable": "tvm.runtime.script_printer.Scriptable",
    },
}

_NO_REMOTE = "sessions with other machines are not built; tvm.rpc.LocalSession is this one"
_NOT_CALLED = "no library is called: te.compute, tvm.topi and tvm.relax.op are compiled for the "
_NOT_CALLED += "machine"
_DEBUG = "relax.VirtualMachine has profile, set_instrument and time_evaluator"
_AS_ONNX = "not built; convert the model to ONNX, tvm.relax.frontend.onnx.from_onnx imports it"

# Names that scripts use and that are not here, and what takes their place.
GONE = {
    "tvm.auto_scheduler": "tvm.meta_schedule tunes programs",
    "tvm.autotvm": "tvm.meta_schedule tunes programs",
    "tvm.context": "write tvm.device",
    **{
        f"tvm.contrib.{name}": _NOT_CALLED
        for name in "cblas cublas cublaslt cudnn cutlass dnnl hipblas libtorch miopen mkl mps "
        "nnpack nvshmem random rocblas sort thrust".split()
    },
    **{
        f"tvm.contrib.{name}": "write tvm.compile(model, target); there is one way to run it"
        for name in "coreml_runtime cuda_graph graph_runtime pipeline_executor "
        "tflite_runtime".split()
    },
    "tvm.contrib.debugger": _DEBUG,
    "tvm.contrib.dlpack": "compiled functions take tensors of PyTorch as they are",
    "tvm.contrib.download": "write urllib.request.urlretrieve",
    "tvm.contrib.hexagon": "there is no code generator for Hexagon",
    "tvm.contrib.rpc": _NO_REMOTE,
    "tvm.contrib.tedd": "sch.mod.show() prints the loops",
    "tvm.contrib.torch": "compiled functions take tensors of PyTorch as they are",
    "tvm.contrib.pickle_memoize": "write functools.cache",
    "tvm.exec": "servers and trackers of RPC are not built; tvm.rpc.LocalSession is this machine",
    "tvm.driver.tvmc": "the command is tvm, as in tvm compile model.onnx -o model.so",
    "tvm.lower": "tvm.compile lowers and compiles; to see the lowered program, run the passes of "
    "tvm.tir.get_default_tir_pipeline(target)",
    "tvm.micro": "tvm.compile for target c, and export_library, give C for other machines",
    "tvm.relax.frontend.stablehlo": _AS_ONNX,
    "tvm.relax.frontend.tflite": _AS_ONNX,
    "tvm.relay.frontend": "tvm.relax.frontend.onnx and tvm.relax.frontend.torch import models",
    "tvm.relay.transform": "tvm.relax.transform has the passes of graphs",
    **{
        f"tvm.relay.{name}": "graphs are written with tvm.relax.BlockBuilder or in TVMScript"
        for name in ("Function", "analysis", "const", "expr", "nn", "op", "testing", "var")
    },
    **{
        f"tvm.rpc.{name}": _NO_REMOTE
        for name in "PopenSession RPCSession Server TrackerSession client connect connect_tracker "
        "proxy server tracker".split()
    },
    "tvm.runtime.disco": "sessions of several processes are not built",
    "tvm.target.datatype": "types of one's own are not built",
    "tvm.te.create_schedule": "write tvm.tir.Schedule(te.create_prim_func([...]))",
    "tvm.te.gradient": "relax.transform.Gradient differentiates graphs",
    "tvm.te.hybrid": "write the loops as a T.prim_func",
}


def spelled(function=None, **more):
    """The function, which also takes its keywords as other versions name them: KEYWORDS, and
    `more` of the kind theirs="ours"."""
    if function is None:
        return functools.partial(spelled, **more)
    code = function.__code__
    params = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    other = more | {KEYWORDS[p]: p for p in params if p in KEYWORDS}
    if not other:
        return function

    @functools.wraps(function)
    def renamed(*args, **kwargs):
        if kwargs and not other.keys().isdisjoint(kwargs):
            for theirs in other.keys() & kwargs.keys():
                if other[theirs] in kwargs:
                    raise TypeError(
                        f"{function.__name__}: expected one of {other[theirs]} and {theirs}, "
                        "which are the same, got both"
                    )
                kwargs[other[theirs]] = kwargs.pop(theirs)
        return function(*args, **kwargs)

    return renamed


def names_in(module):
    """The alias names of one module."""
    prefix = module + "."
    below = [m[len(prefix) :] for m in (*MODULES, *NAMES) if m.startswith(prefix)]
    return [*NAMES.get(module, ()), *(m for m in below if "." not in m and m[0] != "_")]


def resolve(name):
    """What the alias `name` stands for, or None where it is no alias."""
    module, _, attr = name.rpartition(".")
    target = NAMES.get(module, {}).get(attr)
    if target is None:
        return None
    module, _, attr = target.rpartition(".")
    return getattr(importlib.import_module(module), attr)


def did_you_mean(name, names):
    """ ", did you mean 'x'?" for the nearest of `names`, or "" when none is near."""
    import difflib

    near = difflib.get_close_matches(str(name), [str(n) for n in names if str(n)[:1] != "_"], n=1)
    return f", did you mean '{near[0]}'?" if near else ""


def no_attribute(module, name, names):
    """The AttributeError for a name that a module lacks; `names()` lists what it has."""
    hint = ""
    if instead := GONE.get(f"{module}.{name}"):
        hint = f": {instead}"
    elif name[:1] != "_":
        hint = did_you_mean(name, names())
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}")


# Packages with a module _ffi_api: the global functions of the same prefix as attributes.
_FFI_API = (
    "arith ir te tir tir.analysis tir.transform tir.schedule target runtime topi relax".split()
)


def _ffi_function(package):
    def __getattr__(name):
        import tvm_ffi

        if name[:2] == "__":
            raise AttributeError(name)
        # What the package makes of a function has its defaults.
        function = getattr(importlib.import_module("tvm." + package), name, None)
        if function is None:
            function = tvm_ffi.get_global_func(f"{package}.{name}", allow_missing=True)
        if function is None and package == "target":
            codegen = importlib.import_module("tvm.target.codegen")
            function = getattr(codegen, name, getattr(codegen, name + "s", None))
        if function is None:
            raise AttributeError(f"expected a function '{package}.{name}', which is not registered")
        return function

    return __getattr__


class _FunctionsFirst(types.ModuleType):
    """A package with functions that are called like alias modules in it: importing such a module
    leaves the function where it is, as `from .view import view` in the package would."""

    def __setattr__(self, name, value):
        if not (isinstance(value, types.ModuleType) and callable(getattr(self, name, None))):
            super().__setattr__(name, value)


class _Finder:
    """Imports alias modules: the very module another name stands for, or one that holds alias
    names only."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("tvm."):
            return None
        if instead := GONE.get(fullname):
            # Without a name: `from tvm import x` would say less of a module it knows is missing.
            raise ModuleNotFoundError(f"No module named '{fullname}': {instead}")
        known = self._target(fullname) is not None or fullname in NAMES or self._ffi(fullname)
        if not known and not any(m.startswith(fullname + ".") for m in MODULES):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    @staticmethod
    def _target(fullname):
        """Also of modules below an alias: tvm.tirx.transform is tvm.tir.transform."""
        head, tail = fullname, ""
        while head:
            if head in MODULES:
                return MODULES[head] + tail
            head, _, last = head.rpartition(".")
            tail = f".{last}{tail}"
        return None

    @staticmethod
    def _ffi(fullname):
        package, _, last = fullname[4:].rpartition(".")
        return package if last == "_ffi_api" and package in _FFI_API else None

    def create_module(self, spec):
        target = self._target(spec.name)
        if target is None:
            return None
        module = importlib.import_module(target)
        if target == spec.name.rpartition(".")[0]:
            module.__class__ = _FunctionsFirst
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        spec = module.__spec__
        if spec.loader_state is not None:
            module.__spec__ = spec.loader_state
        elif package := self._ffi(spec.name):
            module.__getattr__ = _ffi_function(package)
        else:
            module.__getattr__, module.__dir__ = self._names(spec.name)

    @staticmethod
    def _names(module):
        def __getattr__(name):
            value = resolve(f"{module}.{name}")
            full_name = f"{module}.{name}"
            if value is None and (full_name in MODULES or full_name in NAMES):
                value = importlib.import_module(full_name)
            if value is None:
                raise no_attribute(module, name, __dir__)
            setattr(sys.modules[module], name, value)  # found there the next time
            return value

        def __dir__():
            return sorted(names_in(module))

        return __getattr__, __dir__


class _FinderBelow(_Finder):
    """Of modules below an alias. The regular finders would make a second copy of a module, found in
    the folder of the package that the alias stands for."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith("tvm.") and fullname not in MODULES and self._target(fullname):
            return super().find_spec(fullname, path, target)
        return None


def install():
    """After the regular finders: a real module wins over an alias."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FinderBelow())
        sys.meta_path.append(_Finder())
