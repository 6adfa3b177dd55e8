// SPDX-License-Identifier: Apache-2.0
// Code for the virtual machine of lowered functions of the graph language.
#pragma once
#include "tvm/relax/expr.h"
#include "tvm/runtime/exec_builder.h"

namespace tvm::relax {

/// Adds the functions of the graph language in `mod` to the builder, as bytecode; the result is the
/// module of all others. ValueError for what should have been lowered before.
IRModule VMCodeGen(const runtime::vm::ExecBuilder& builder, const IRModule& mod);
/// The same, but each becomes a PrimFunc `__vmtir__<name>` of the result, over the lists of
/// registers, constants and functions.
IRModule VMTIRCodeGen(const runtime::vm::ExecBuilder& builder, const IRModule& mod);

}  // namespace tvm::relax
