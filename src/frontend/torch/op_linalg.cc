// SPDX-License-Identifier: Apache-2.0
// Linear algebra: factors, systems, spectra. Functions of the runtime compute them, for matrices in
// batches; a singular matrix gives infinities and NaN, or an `info` other than 0, never an error.
#include <limits>

#include "complex.h"
#include "network.h"
#include "runtime_call.h"

namespace tvm::frontend::torch {

relax::TensorStructInfo InfoFor(const Dims& dims, DataType t) {
  return relax::TensorStructInfo(Array<PrimExpr>(dims.begin(), dims.end()), t);
}
std::vector<Expr> RunInRuntime(Conversion& c, const std::string& name, const Array<Expr>& args,
                               const Array<StructInfo>& results) {
  relax::ExternFunc function("relax.run." + name);
  Any info = results.size() == 1 ? Any(results[0]) : Any(results);
  Expr call = c.Emit("call_dps_packed", function, relax::Tuple(args), info);
  if (results.size() == 1) return {call};
  std::vector<Expr> items;
  for (size_t i = 0; i < results.size(); ++i) {
    items.push_back(c.Bind(TupleGetItem(call, static_cast<int64_t>(i))));
  }
  return items;
}

namespace {

constexpr DataType kIndex = DataType::Int(32);

std::vector<Expr> Run(Conversion& c, const std::string& name, const Array<Expr>& args,
                      const Array<StructInfo>& results) {
  return RunInRuntime(c, "linalg." + name, args, results);
}
PrimValue FlagValue(bool flag) { return PrimValue(IntImm::Bool(flag)); }

// ---- batches of matrices ------------------------------------------------------------------------
Dims BatchOf(const Expr& x, int64_t inner = 2) {
  Dims dims = ShapeOf(x);
  return Dims(dims.begin(), dims.end() - inner);
}
PrimExpr RowsOf(const Expr& x) { return ShapeOf(x)[RankOf(x) - 2]; }
PrimExpr ColumnsOf(const Expr& x) { return ShapeOf(x)[RankOf(x) - 1]; }
Dims With(Dims batch, std::initializer_list<PrimExpr> inner) {
  for (const PrimExpr& dim : inner) batch.push_back(dim);
  return batch;
}
PrimExpr Smaller(Conversion& c, const PrimExpr& a, const PrimExpr& b) {
  return c.Simplify(min(a, b));
}
Expr Turned(Conversion& c, const Expr& x) {
  std::vector<int64_t> axes = Axes(RankOf(x));
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return c.Permute(x, axes);
}
/// The batches of two tensors of matrices, broadcast.
Dims CommonBatch(Conversion& c, const Expr& a, const Expr& b) {
  Dims p = BatchOf(a), q = BatchOf(b);
  if (p.size() < q.size()) std::swap(p, q);
  size_t extra = p.size() - q.size();
  for (size_t i = 0; i < q.size(); ++i) {
    if (IsOne(p[extra + i])) p.Set(extra + i, q[i]);
  }
  return p;
}
Expr ToBatch(Conversion& c, const Expr& x, const Dims& batch) {
  return c.BroadcastTo(x, With(batch, {RowsOf(x), ColumnsOf(x)}));
}
Expr Identity(Conversion& c, const PrimExpr& n, const Dims& batch, DataType t) {
  Expr eye = c.Emit("eye", PrimValue(n), PrimValue(n), PrimValue::Int64(0), t);
  return c.BroadcastTo(eye, With(batch, {n, n}));
}
Expr Nothing(Conversion& c, DataType t) { return c.Emit("zeros", Dims{IntImm::Int64(0)}, t); }
Expr Rows(Conversion& c, const Expr& x, const PrimExpr& n) {
  return c.Equal(RowsOf(x), n) ? x : c.Slice(x, RankOf(x) - 2, IntImm::Int64(0), n);
}
Expr Columns(Conversion& c, const Expr& x, const PrimExpr& n) {
  return c.Equal(ColumnsOf(x), n) ? x : c.Slice(x, RankOf(x) - 1, IntImm::Int64(0), n);
}
/// A vector for each matrix as a column that scales its rows, or a row that scales its columns.
Expr AsRow(Conversion& c, const Expr& v) { return c.Emit("expand_dims", v, RankOf(v) - 1); }

// ---- LU -----------------------------------------------------------------------------------------
struct Factors {
  Expr lu, pivots, info;
};
Factors FactorsOf(Conversion& c, const Expr& a) {
  Dims batch = BatchOf(a);
  std::vector<Expr> items =
      Run(c, "lu", {a},
          {InfoFor(ShapeOf(a), TypeOf(a)),
           InfoFor(With(batch, {Smaller(c, RowsOf(a), ColumnsOf(a))}), kIndex),
           InfoFor(batch, kIndex)});
  return {items[0], items[1], items[2]};
}
Expr SolveBy(Conversion& c, const Expr& lu, const Expr& pivots, const Expr& b) {
  return Run(c, "lu_solve", {lu, pivots, b}, {InfoFor(ShapeOf(b), TypeOf(b))})[0];
}
Any LUFactor(Conversion& c) {
  if (!c.Flag(1)) TVM_REFUSE(c, NotImplementedError) << "expected pivot=True";
  Factors f = FactorsOf(c, c.Tensor(0));
  return Array<Any>{f.lu, f.pivots, f.info};
}
Any LDLFactor(Conversion& c) {
  Expr a = c.Tensor(0);
  Dims batch = BatchOf(a);
  std::vector<Expr> items =
      Run(c, "ldl", {a},
          {InfoFor(ShapeOf(a), TypeOf(a)), InfoFor(With(batch, {RowsOf(a)}), kIndex),
           InfoFor(batch, kIndex)});
  return Array<Any>{c.Emit("tril", items[0], 0), items[1], items[2]};
}
Any LDLSolve(Conversion& c) {
  Expr ld = c.Tensor(0), pivots = c.Tensor(1), b = c.Tensor(2);
  Dims batch = CommonBatch(c, ld, b);
  pivots = c.BroadcastTo(pivots, With(batch, {RowsOf(ld)}));
  ld = ToBatch(c, ld, batch);
  b = ToBatch(c, b, batch);
  return Run(c, "ldl_solve", {ld, pivots, b}, {InfoFor(ShapeOf(b), TypeOf(b))})[0];
}
/// (P, L, U) of factors in one.
Array<Any> Unpacked(Conversion& c, const Expr& lu, const Expr& pivots) {
  DataType t = TypeOf(lu);
  PrimExpr m = RowsOf(lu), k = Smaller(c, m, ColumnsOf(lu));
  Expr p = Run(c, "permutation", {pivots}, {InfoFor(With(BatchOf(lu), {m, m}), t)})[0];
  Expr below = c.Emit("tril", Columns(c, lu, k), -1);
  Expr eye = c.Emit("eye", PrimValue(m), PrimValue(k), PrimValue::Int64(0), t);
  return {p, c.Emit("add", below, eye), c.Emit("triu", Rows(c, lu, k), 0)};
}
Any LU(Conversion& c) {
  if (!c.Flag(1)) TVM_REFUSE(c, NotImplementedError) << "expected pivot=True";
  Factors f = FactorsOf(c, c.Tensor(0));
  return Unpacked(c, f.lu, f.pivots);
}
Any LUUnpack(Conversion& c) {
  Array<Any> all = Unpacked(c, c.Tensor(0), c.Tensor(1));
  Expr nothing = Nothing(c, TypeOf(c.Tensor(0)));
  if (!c.Flag(2)) all = {all[0], nothing, nothing};
  if (!c.Flag(3)) all.Set(0, nothing);
  return all;
}
/// 1 or -1 by the number of swaps.
Expr SignOf(Conversion& c, const Expr& pivots, DataType t) {
  PrimExpr n = ShapeOf(pivots)[RankOf(pivots) - 1];
  Expr unmoved = c.Emit("arange", PrimValue::Int64(1), PrimValue(n + IntImm::Int64(1)),
                        PrimValue::Int64(1), kIndex);
  Expr moved = c.Cast(c.Emit("not_equal", pivots, unmoved), t);
  Expr odd = c.Emit("floor_mod", c.Emit("sum", moved, Array<Any>{-1}), c.Const(2.0, t));
  return c.Emit("subtract", c.Const(1.0, t), c.Emit("multiply", odd, c.Const(2.0, t)));
}
Expr DiagonalOf(Conversion& c, const Expr& x) {
  return c.importer()->Apply("aten.diagonal.default", {x, 0, -2, -1}).cast<Expr>();
}
Any Determinant(Conversion& c) {
  Factors f = FactorsOf(c, c.Tensor(0));
  Expr product = c.Emit("prod", DiagonalOf(c, f.lu), Array<Any>{-1});
  Expr sign = SignOf(c, f.pivots, TypeOf(f.lu));
  return Array<Any>{c.Emit("multiply", product, sign), f.lu, f.pivots};
}
Any LogDeterminant(Conversion& c) {
  Factors f = FactorsOf(c, c.Tensor(0));
  Expr diagonal = DiagonalOf(c, f.lu);
  Expr signs = c.Emit("prod", c.Emit("sign", diagonal), Array<Any>{-1});
  Expr logs = c.Emit("sum", c.Emit("log", c.Emit("abs", diagonal)), Array<Any>{-1});
  Expr sign = c.Emit("multiply", signs, SignOf(c, f.pivots, TypeOf(f.lu)));
  return Array<Any>{sign, logs, f.lu, f.pivots};
}
Any Inverse(Conversion& c) {
  Expr a = c.Tensor(0);
  Factors f = FactorsOf(c, a);
  Expr inverse = SolveBy(c, f.lu, f.pivots, Identity(c, RowsOf(a), BatchOf(a), TypeOf(a)));
  return Array<Any>{inverse, f.info};
}
/// The solution X of A X = B, or of X A = B; B may be one vector for each matrix.
Any Solve(Conversion& c) {
  Expr a = c.Tensor(0), b = c.Tensor(1);
  Dims vectors = BatchOf(a, 1);
  bool is_vector = RankOf(b) == 1 || (RankOf(b) + 1 == RankOf(a) && c.Equal(ShapeOf(b), vectors));
  if (is_vector) b = c.Emit("expand_dims", b, -1);
  bool left = c.Flag(2);
  Dims batch = CommonBatch(c, a, b);
  Factors shown = FactorsOf(c, a);
  Factors f = left && c.Equal(batch, BatchOf(a))
                  ? shown
                  : FactorsOf(c, ToBatch(c, left ? a : Turned(c, a), batch));
  Expr x = SolveBy(c, f.lu, f.pivots, ToBatch(c, left ? b : Turned(c, b), batch));
  if (!left) x = Turned(c, x);
  if (is_vector) x = c.Emit("squeeze", x, Array<Any>{-1});
  return Array<Any>{x, shown.lu, shown.pivots, shown.info};
}
/// By factors that were computed before. The transposed matrix is (P L U)' = U' L' P'.
Any LUSolve(Conversion& c) {
  Expr lu = c.Tensor(0), pivots = c.Tensor(1), b = c.Tensor(2);
  bool left = c.Flag(3), adjoint = c.Flag(4);
  if (!left) b = Turned(c, b);
  Dims batch = CommonBatch(c, lu, b);
  lu = ToBatch(c, lu, batch);
  b = ToBatch(c, b, batch);
  pivots = c.BroadcastTo(pivots, With(batch, {ColumnsOf(lu)}));
  Expr x;
  if (adjoint == left) {
    Array<Any> parts = Unpacked(c, lu, pivots);
    auto solve = [&](const Expr& a, const Expr& rhs, bool upper, bool unit) {
      return Run(c, "triangular_solve", {a, rhs, FlagValue(upper), FlagValue(unit)},
                 {InfoFor(ShapeOf(rhs), TypeOf(rhs))})[0];
    };
    Expr y = solve(Turned(c, lu), b, false, false);
    y = solve(Turned(c, lu), y, true, true);
    x = MatMul(c, parts[0].cast<Expr>(), y);
  } else {
    x = SolveBy(c, lu, pivots, b);
  }
  return left ? x : Turned(c, x);
}

// ---- Cholesky and triangles ---------------------------------------------------------------------
Array<Any> CholeskyOf(Conversion& c, Expr a, bool upper) {
  if (upper) a = Turned(c, a);
  std::vector<Expr> items =
      Run(c, "cholesky", {a}, {InfoFor(ShapeOf(a), TypeOf(a)), InfoFor(BatchOf(a), kIndex)});
  return {upper ? Turned(c, items[0]) : items[0], items[1]};
}
Any CholeskyEx(Conversion& c) { return CholeskyOf(c, c.Tensor(0), c.Flag(1)); }
Any Cholesky(Conversion& c) { return CholeskyOf(c, c.Tensor(0), c.Flag(1))[0]; }
Expr Triangular(Conversion& c, Expr a, Expr b, bool upper, bool unit, bool left = true) {
  if (!left) {
    a = Turned(c, a);
    b = Turned(c, b);
    upper = !upper;
  }
  Dims batch = CommonBatch(c, a, b);
  a = ToBatch(c, a, batch);
  b = ToBatch(c, b, batch);
  Expr x = Run(c, "triangular_solve", {a, b, FlagValue(upper), FlagValue(unit)},
               {InfoFor(ShapeOf(b), TypeOf(b))})[0];
  return left ? x : Turned(c, x);
}
Any SolveTriangular(Conversion& c) {
  return Triangular(c, c.Tensor(0), c.Tensor(1), c.Flag(2), c.Flag(4), c.Flag(3));
}
Any TriangularSolve(Conversion& c) {
  Expr b = c.Tensor(0), a = c.Tensor(1);
  bool upper = c.Flag(2), transpose = c.Flag(3);
  Expr x = Triangular(c, transpose ? Turned(c, a) : a, b, upper != transpose, c.Flag(4));
  return Array<Any>{x, ToBatch(c, a, CommonBatch(c, a, b))};
}
/// Solves L L' x = b.
Expr CholeskySolveOf(Conversion& c, const Expr& b, const Expr& factor, bool upper) {
  Expr lower = upper ? Turned(c, factor) : factor;
  return Triangular(c, Turned(c, lower), Triangular(c, lower, b, false, false), true, false);
}
Any CholeskySolve(Conversion& c) { return CholeskySolveOf(c, c.Tensor(0), c.Tensor(1), c.Flag(2)); }
Any CholeskyInverse(Conversion& c) {
  Expr a = c.Tensor(0);
  return CholeskySolveOf(c, Identity(c, RowsOf(a), BatchOf(a), TypeOf(a)), a, c.Flag(1));
}

// ---- QR -----------------------------------------------------------------------------------------
Array<Any> GeqrfOf(Conversion& c, const Expr& a) {
  PrimExpr k = Smaller(c, RowsOf(a), ColumnsOf(a));
  std::vector<Expr> items = Run(
      c, "geqrf", {a}, {InfoFor(ShapeOf(a), TypeOf(a)), InfoFor(With(BatchOf(a), {k}), TypeOf(a))});
  return {items[0], items[1]};
}
Any Geqrf(Conversion& c) { return GeqrfOf(c, c.Tensor(0)); }
Expr ProductOf(Conversion& c, const Expr& reflections, const Expr& tau, const PrimExpr& columns) {
  Dims shape = With(BatchOf(reflections), {RowsOf(reflections), columns});
  return Run(c, "householder_product", {reflections, tau},
             {InfoFor(shape, TypeOf(reflections))})[0];
}
Any HouseholderProduct(Conversion& c) {
  return ProductOf(c, c.Tensor(0), c.Tensor(1), ColumnsOf(c.Tensor(0)));
}
Any QR(Conversion& c) {
  Expr a = c.Tensor(0);
  std::string mode = c.Text(1);
  Array<Any> factored = GeqrfOf(c, a);
  Expr reflections = factored[0].cast<Expr>();
  PrimExpr k = mode == "complete" ? RowsOf(a) : Smaller(c, RowsOf(a), ColumnsOf(a));
  Expr q =
      mode == "r" ? Nothing(c, TypeOf(a)) : ProductOf(c, reflections, factored[1].cast<Expr>(), k);
  return Array<Any>{q, c.Emit("triu", Rows(c, reflections, k), 0)};
}
/// Q C, C Q, or with Q transposed.
Any MultiplyByQ(Conversion& c) {
  Expr a = c.Tensor(0), other = c.Tensor(2);
  Expr q = ProductOf(c, a, c.Tensor(1), RowsOf(a));
  if (c.Flag(4)) q = Turned(c, q);
  return c.Flag(3) ? MatMul(c, q, other) : MatMul(c, other, q);
}

// ---- spectra ------------------------------------------------------------------------------------
struct Symmetric {
  Expr values, vectors;
};
Symmetric EighOf(Conversion& c, const Expr& a, bool upper) {
  std::vector<Expr> items =
      Run(c, "eigh", {a, FlagValue(upper)},
          {InfoFor(BatchOf(a, 1), TypeOf(a)), InfoFor(ShapeOf(a), TypeOf(a))});
  return {items[0], items[1]};
}
Any Eigh(Conversion& c) {
  Symmetric s = EighOf(c, c.Tensor(0), c.Text(1) == "U");
  return Array<Any>{s.values, c.Flag(2) ? s.vectors : Nothing(c, TypeOf(s.values))};
}
struct Singular {
  Expr u, s, vh;
};
Singular SVDOf(Conversion& c, const Expr& a, bool full) {
  DataType t = TypeOf(a);
  Dims batch = BatchOf(a);
  PrimExpr m = RowsOf(a), n = ColumnsOf(a), k = Smaller(c, m, n);
  std::vector<Expr> items =
      Run(c, "svd", {a},
          {InfoFor(With(batch, {m, full ? m : k}), t), InfoFor(With(batch, {k}), t),
           InfoFor(With(batch, {full ? n : k, n}), t)});
  return {items[0], items[1], items[2]};
}
Any SVD(Conversion& c) {
  Singular s = SVDOf(c, c.Tensor(0), c.Flag(1) && c.Flag(2));
  if (c.Flag(2)) return Array<Any>{s.u, s.s, s.vh};
  Expr nothing = Nothing(c, TypeOf(s.s));
  return Array<Any>{nothing, s.s, nothing};
}
Array<Any> EigOf(Conversion& c) {
  Expr a = c.Real(c.Tensor(0));
  StructInfo values = InfoFor(BatchOf(a, 1), TypeOf(a)), vectors = InfoFor(ShapeOf(a), TypeOf(a));
  std::vector<Expr> parts = Run(c, "eig", {a}, {values, values, vectors, vectors});
  return {Complex(parts[0], parts[1]), Complex(parts[2], parts[3])};
}
Any Eig(Conversion& c) { return EigOf(c); }
Any EigenValues(Conversion& c) { return EigOf(c)[0]; }

/// Values above the tolerance inverted, those below it 0.
Expr InvertedAbove(Conversion& c, const Expr& values, const Expr& tolerance) {
  DataType t = TypeOf(values);
  Expr kept = c.Emit("greater", c.Emit("abs", values), tolerance);
  Expr inverse = c.Emit("divide", c.Const(1.0, t), values);
  return c.Emit("where", kept, inverse, c.Emit("zeros_like", values));
}
double EpsilonOf(DataType t) {
  return t.bits() == 64 ? std::numeric_limits<double>::epsilon()
                        : std::numeric_limits<float>::epsilon();
}
/// The larger of atol and rtol times the largest value, for each matrix as a column.
Expr Tolerance(Conversion& c, const Expr& a, const Expr& values, const Any& atol, const Any& rtol) {
  DataType t = TypeOf(a);
  auto column = [&](const Any& value) {
    if (!IsTensor(value)) return c.As(value, t);
    Expr x = c.Cast(value.cast<Expr>(), t);
    return RankOf(x) == 0 ? x : c.Emit("expand_dims", x, -1);
  };
  Expr largest = c.Emit("max", c.Emit("abs", values), Array<Any>{-1}, true);
  Any relative = rtol;
  if (rtol == nullptr) {
    auto n = AsConstInt(c.Simplify(max(RowsOf(a), ColumnsOf(a))));
    if (!n) TVM_REFUSE(c, NotImplementedError) << "expected constant sizes, or rtol";
    relative = EpsilonOf(t) * static_cast<double>(*n);
  }
  Expr default_rtol = column(relative);
  if (atol == nullptr) return c.Emit("multiply", largest, default_rtol);
  Expr absolute = column(atol);
  if (rtol == nullptr && IsTensor(atol)) {  // the default holds where atol is 0
    Expr is_given = c.Emit("greater", absolute, c.Const(0.0, t));
    default_rtol = c.Emit("where", is_given, c.Const(0.0, t), default_rtol);
  } else if (rtol == nullptr && atol.cast<double>() > 0) {
    default_rtol = c.Const(0.0, t);
  }
  return c.Emit("maximum", c.Emit("multiply", largest, default_rtol), absolute);
}
Expr PseudoInverseOf(Conversion& c, const Expr& a, const Any& atol, const Any& rtol,
                     bool hermitian) {
  if (hermitian) {
    Symmetric e = EighOf(c, a, false);
    Expr inverse = InvertedAbove(c, e.values, Tolerance(c, a, e.values, atol, rtol));
    Expr scaled = c.Emit("multiply", e.vectors, AsRow(c, inverse));
    return MatMul(c, scaled, Turned(c, e.vectors));
  }
  Singular s = SVDOf(c, a, false);
  Expr inverse = InvertedAbove(c, s.s, Tolerance(c, a, s.s, atol, rtol));
  Expr scaled = c.Emit("multiply", Turned(c, s.vh), AsRow(c, inverse));
  return MatMul(c, scaled, Turned(c, s.u));
}
Any PseudoInverse(Conversion& c) { return PseudoInverseOf(c, c.Tensor(0), c[1], c[2], c.Flag(3)); }
Any MatrixExp(Conversion& c) {
  Expr a = c.Tensor(0);
  return Run(c, "matrix_exp", {a}, {InfoFor(ShapeOf(a), TypeOf(a))})[0];
}
Any Unchecked(Conversion& c) { return nullptr; }

TVM_REGISTER() {
  Converter("linalg_lu_factor_ex.default", "A, pivot=True, check_errors=False", &LUFactor);
  Converter("linalg_lu.default", "A, pivot=True", &LU);
  Converter("lu_unpack.default", "LU_data, LU_pivots, unpack_data=True, unpack_pivots=True",
            &LUUnpack);
  Converter("linalg_lu_solve.default", "LU, pivots, B, left=True, adjoint=False", &LUSolve);
  Converter("linalg_ldl_factor_ex.default", "self, hermitian=False, check_errors=False",
            &LDLFactor);
  Converter("linalg_ldl_solve.default", "LD, pivots, B, hermitian=False", &LDLSolve);
  Converter("_linalg_det.default", "A", &Determinant);
  Converter("_linalg_slogdet.default", "A", &LogDeterminant);
  Converter("linalg_inv_ex.default", "A, check_errors=False", &Inverse);
  Converter("_linalg_solve_ex.default", "A, B, left=True, check_errors=False", &Solve);
  Converter("linalg_cholesky_ex.default", "self, upper=False, check_errors=False", &CholeskyEx);
  Converter("cholesky.default", "self, upper=False", &Cholesky);
  Converter("cholesky_solve.default", "self, input2, upper=False", &CholeskySolve);
  Converter("cholesky_inverse.default", "self, upper=False", &CholeskyInverse);
  Converter("linalg_solve_triangular.default", "self, B, upper, left=True, unitriangular=False",
            &SolveTriangular);
  Converter("triangular_solve.default", "self, A, upper=True, transpose=False, unitriangular=False",
            &TriangularSolve);
  Converter("geqrf.default", "self", &Geqrf);
  Converter("linalg_householder_product.default", "input, tau", &HouseholderProduct);
  Converter("linalg_qr.default", "A, mode='reduced'", &QR);
  Converter("ormqr.default", "self, input2, input3, left=True, transpose=False", &MultiplyByQ);
  Converter("_linalg_eigh.default", "A, UPLO='L', compute_v=True", &Eigh);
  Converter("_linalg_svd.default", "A, full_matrices=False, compute_uv=True, driver=None", &SVD);
  Converter("linalg_eig.default", "self", &Eig);
  Converter("linalg_eigvals.default _linalg_eigvals.default", "self", &EigenValues);
  Converter("linalg_pinv.atol_rtol_tensor linalg_pinv.atol_rtol_float",
            "self, atol=None, rtol=None, hermitian=False", &PseudoInverse);
  Converter("linalg_matrix_exp.default", "self", &MatrixExp);
  Converter("_linalg_check_errors.default", "info, api_name, is_matrix", &Unchecked);
}

}  // namespace
}  // namespace tvm::frontend::torch
