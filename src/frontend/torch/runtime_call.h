// SPDX-License-Identifier: Apache-2.0
// What functions of the runtime compute, because no kernel does.
#pragma once
#include "converter.h"

namespace tvm::frontend::torch {

/// A tensor's struct info.
relax::TensorStructInfo InfoFor(const Dims& dims, DataType t);
/// The results of "relax.run.<name>(args…, results…)".
std::vector<Expr> RunInRuntime(Conversion& c, const std::string& name, const Array<Expr>& args,
                               const Array<StructInfo>& results);

}  // namespace tvm::frontend::torch
