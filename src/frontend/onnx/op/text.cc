// SPDX-License-Identifier: Apache-2.0
// How often runs of words occur.
#include <map>

#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
/// Strings as the numbers of their words in the pool, which becomes these numbers.
Expr WordNumbers(Node& n, std::vector<int64_t>* pool) {
  std::map<std::string, int64_t> numbers;
  Array<Expr> words;
  for (const std::string& word : n.Strs("pool_strings")) {
    auto [it, is_new] = numbers.emplace(word, static_cast<int64_t>(words.size()));
    if (is_new) words.push_back(relax::StringImm(word));
    pool->push_back(it->second);
  }
  const Value& x = n.StringsIn(0);
  return n.importer.CallRuntime("strings.lookup", {x.words, x.expr, relax::Tuple(words)},
                                relax::TensorStructInfo(Node::Shape(x.expr), DataType::Int(64)));
}
/// Counts the n-grams of a table in each row, their words side by side or with up to max_skip_count
/// others between any two.
Outputs ConvertTfIdfVectorizer(Node& n) {
  int64_t least = n.Int("min_gram_length"), most = n.Int("max_gram_length");
  int64_t skips = n.Int("max_skip_count");
  std::string mode = n.Str("mode");
  std::vector<int64_t> starts = n.Ints("ngram_counts"), columns = n.Ints("ngram_indexes");
  std::vector<int64_t> pool = n.Ints("pool_int64s");
  std::vector<double> weights = n.Floats("weights");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") n.Fail("mode to be TF, IDF or TFIDF", mode);
  Expr x = n.HasAttr("pool_strings") ? WordNumbers(n, &pool) : n.In(0);
  if (least < 1 || most < least || skips < 0 || most * (skips + 1) > 1000)
    n.Fail("lengths of n-grams from 1 and skips from 0", "others");
  // The table: a row per n-gram, words behind its end are not looked at.
  std::vector<int64_t> table, lengths;
  for (size_t k = 0; k < starts.size(); ++k) {
    auto size = static_cast<int64_t>(k) + 1;
    int64_t end = k + 1 < starts.size() ? starts[k + 1] : static_cast<int64_t>(pool.size());
    if (starts[k] < 0 || end < starts[k] || end > static_cast<int64_t>(pool.size()) ||
        (end - starts[k]) % size)
      n.Fail("ngram_counts that divide the pool", "others");
    for (int64_t at = starts[k]; at < end; at += size) {
      for (int64_t w = 0; w < most; ++w) table.push_back(w < size ? pool[at + w] : 0);
      lengths.push_back(size > most ? most + 1 : size);
    }
  }
  auto grams = static_cast<int64_t>(lengths.size());
  if (columns.size() != lengths.size())
    n.Fail("an index for each of " + std::to_string(grams) + " n-grams",
           std::to_string(columns.size()));
  int64_t width = 1 + *std::max_element(columns.begin(), columns.end());
  std::vector<int64_t> gram_of(width, -1);
  for (int64_t g = 0; g < grams; ++g) {
    if (columns[g] < 0) n.Fail("ngram_indexes from 0", std::to_string(columns[g]));
    gram_of[columns[g]] = g;
  }
  if (!weights.empty() && weights.size() != lengths.size())
    n.Fail("a weight for each n-gram", std::to_string(weights.size()));
  bool is_row = Node::Rank(x) == 1;
  Expr rows = n.Cast(is_row ? n("expand_dims", x, List({0})) : x, DataType::Int(64));
  Te te(n);
  te::Tensor t = te(rows), words = te(n.Reshape(n.IntVector(table), {Num(grams), Num(most)}));
  te::Tensor sizes = te(n.IntVector(lengths)), gram = te(n.IntVector(gram_of));
  PrimExpr length = t->shape[1];
  DataType real = DataType::Float(32);
  te::Tensor counts = topi::Compute(
      {t->shape[0], Num(width)},
      [&](const Index& i) {
        te::IterVar p = topi::Along(length, "p");
        PrimExpr g = max(gram(i[1]), Num(0)), size = sizes(g), sum = Num(real, 0);
        for (int64_t s = 0; s <= skips; ++s) {
          PrimExpr same = gram(i[1]) >= Num(0) && size >= Num(least) && size <= Num(most) &&
                          p->var + (size - Num(1)) * Num(s + 1) < length;
          if (s > 0) same = same && size > Num(1);  // a single word has nothing to skip
          for (int64_t w = 0; w < most; ++w) {
            PrimExpr at = min(p->var + Num(w * (s + 1)), length - Num(1));
            same = same && (Num(w) >= size || equal(t(i[0], at), words(g, Num(w))));
          }
          sum = sum + tir::Select(same, Num(real, 1), Num(real, 0));
        }
        return te::sum(sum, {p});
      },
      "ngrams", topi::kCommReduce);
  std::vector<double> factors(width, 1);
  for (int64_t g = 0; g < grams && !weights.empty(); ++g) factors[columns[g]] = weights[g];
  Known known{{width}, real, {}};
  for (double f : factors) known.elements.push_back(Num(real, f));
  Value value{std::move(known)};
  te::Tensor scale = te(n.importer.TensorOf(&value));
  Expr y = ComputeElements(n, "tf_idf", te, counts->shape, [&](const Index& i) -> PrimExpr {
    PrimExpr count = topi::At(counts, i);
    if (mode == "TF") return count;
    PrimExpr weight = scale(i[1]);
    return mode == "TFIDF" ? count * weight
                           : tir::Select(count > Num(real, 0), weight, Num(real, 0));
  });
  return is_row ? n("squeeze", y, List({0})) : y;
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"TfIdfVectorizer", &ConvertTfIdfVectorizer},
  });
}

}  // namespace tvm::frontend::onnx
