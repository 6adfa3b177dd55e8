// SPDX-License-Identifier: Apache-2.0
// Of boxes that overlap, the one with the best score.
#include "topi/merge_sort.h"

namespace tvm::topi::vision {
using namespace tir;
namespace {
constexpr const char* kNms = "all_class_non_max_suppression";

/// A number, or the only element of a tensor that becomes an input.
struct Threshold {
  std::optional<size_t> input;
  PrimExpr number;
  Threshold(const Operand& value, Array<Tensor>* inputs) {
    if (auto tensor = value.as<Tensor>()) {
      input = inputs->size();
      inputs->push_back(*tensor);
    } else {
      number = value.get<PrimExpr>();
    }
  }
  PrimExpr Get(const Array<Buffer>& in, DataType t) const {
    if (!input) return tvm::cast(t, number);
    const Buffer& b = in[*input];
    return tvm::cast(t, Load(b, Index(b->shape.size(), PrimExpr(0))));
  }
};
/// The share of two boxes (corners in any order) that both have.
PrimExpr Overlap(const Buffer& boxes, const PrimExpr& batch, const PrimExpr& a, const PrimExpr& b) {
  DataType t = boxes->dtype;
  PrimExpr zero = MakeZero(t), area_a, area_b, common;
  for (int64_t axis : {0, 1}) {
    auto side = [&](const PrimExpr& box, bool is_end) {
      PrimExpr p = Load(boxes, {batch, box, PrimExpr(axis)});
      PrimExpr q = Load(boxes, {batch, box, PrimExpr(axis + 2)});
      return is_end ? tvm::max(p, q) : tvm::min(p, q);
    };
    auto length = [&](const PrimExpr& box) { return side(box, true) - side(box, false); };
    PrimExpr both = tvm::max(
        tvm::min(side(a, true), side(b, true)) - tvm::max(side(a, false), side(b, false)), zero);
    area_a = axis == 0 ? length(a) : area_a * length(a);
    area_b = axis == 0 ? length(b) : area_b * length(b);
    common = axis == 0 ? both : common * both;
  }
  PrimExpr all = area_a + area_b - common;
  return Select(all <= zero, zero, div(common, all));
}

/// The boxes that stay, of every class of every image.
struct Suppression {
  PrimExpr images, classes, count;
  Buffer order, other, chosen;
  Scalar number, keeps;
  DataType t;

  Suppression(const Tensor& boxes, const Tensor& scores)
      : images(scores->shape[0]),
        classes(scores->shape[1]),
        count(scores->shape[2]),
        order(Buffer::Decl({count}, count.dtype(), "order")),
        other(Buffer::Decl({count}, count.dtype(), "other")),
        chosen(Buffer::Decl({count}, count.dtype(), "chosen")),
        number("number", count.dtype()),
        keeps("keeps", DataType::Int(32)),
        t(count.dtype()) {}
  /// Runs over one class of one image and calls `take(box)` for the boxes that stay, best first.
  Stmt OfClass(const Array<Buffer>& in, const PrimExpr& image, const PrimExpr& cls,
               const Threshold& most, const Threshold& iou, const Threshold& least,
               const std::function<Stmt(const PrimExpr& box)>& take) const {
    const Buffer &boxes = in[0], &scores = in[1];
    auto score = [&](const PrimExpr& i) { return Load(scores, {image, cls, i}); };
    PrimExpr one = MakeConst(t, 1);
    Stmt sort = MergeSort{count, score, false, order, other}.Run();
    Stmt walk = Loop("k", count, [&](const Var& k) {
      return Let("box", Load(order, {k}), [&](const Var& box) {
        Stmt compare = Loop("j", number.Get(), [&](const Var& j) {
          PrimExpr too_much =
              Overlap(boxes, image, box, Load(chosen, {j})) > iou.Get(in, boxes->dtype);
          return Stmt(IfThenElse(too_much, keeps.Set(PrimExpr(0))));
        });
        Stmt keep =
            Steps({Store(chosen, {number.Get()}, box), number.Set(number.Get() + one), take(box)});
        PrimExpr wanted =
            score(box) > least.Get(in, scores->dtype) && number.Get() < most.Get(in, t);
        return Stmt(IfThenElse(wanted, Steps({keeps.Set(PrimExpr(1)), compare,
                                              IfThenElse(equal(keeps.Get(), PrimExpr(1)), keep)})));
      });
    });
    return Steps({sort, number.Set(MakeZero(t)), walk});
  }
  Stmt WithBuffers(Stmt body) const {
    for (const Buffer& b : {order, other, chosen, number.buffer, keeps.buffer})
      body = WithBuffer(b, body);
    return body;
  }
};
Stmt Zeros(const Buffer& b) {
  return Loops(b->shape, [&](const Index& i) { return Store(b, i, MakeZero(b->dtype)); });
}

Array<Tensor> AllClassNms(const Tensor& boxes, const Tensor& scores, const Operand& max_output,
                          const Operand& iou_threshold, const Operand& score_threshold,
                          String output_format, const Any&) {
  CheckRank(kNms, "boxes (batch, boxes, 4)", boxes, 3);
  CheckRank(kNms, "scores (batch, classes, boxes)", scores, 3);
  bool onnx = output_format == "onnx";
  if (!onnx && output_format != "tensorflow")
    Complain(kNms, "output_format \"onnx\" or \"tensorflow\"",
             '"' + std::string(output_format) + '"');
  Array<Tensor> inputs = {boxes, scores};
  Threshold most(max_output, &inputs), iou(iou_threshold, &inputs), least(score_threshold, &inputs);
  Suppression s(boxes, scores);
  DataType t = s.t, wide = DataType::Int(64);
  PrimExpr zero = MakeZero(t), one = MakeConst(t, 1), all = Simplified(s.classes * s.count);
  auto numbered = [&](const std::vector<PrimExpr>& values, const Buffer& to, Index place) {
    std::vector<Stmt> stores;
    for (size_t k = 0; k < values.size(); ++k) {
      Index at = place;
      at.push_back(MakeConst(t, static_cast<int64_t>(k)));
      stores.push_back(Store(to, at, values[k]));
    }
    return Steps(stores);
  };
  if (onnx) {
    auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
      Scalar total("total", t);
      Stmt run = Loop("b", s.images, [&](const Var& b) {
        return Loop("c", s.classes, [&](const Var& c) {
          return s.OfClass(in, b, c, most, iou, least, [&](const PrimExpr& box) {
            return Steps(
                {numbered({b, c, box}, out[0], {total.Get()}), total.Set(total.Get() + one)});
          });
        });
      });
      Stmt last = Store(out[1], {PrimExpr(0)}, total.Get());
      Stmt program = Steps({Zeros(out[0]), total.Set(zero), run, last});
      return s.WithBuffers(WithBuffer(total.buffer, program));
    };
    PrimExpr rows = Simplified(s.images * all);
    return Extern(kNms, inputs, {{{rows, PrimExpr(3)}, wide}, {{PrimExpr(1)}, wide}}, body);
  }
  // Boxes of all classes of an image, best first.
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    Scalar total("total", t);
    Buffer found = Buffer::Decl({all, PrimExpr(2)}, t, "found");
    Buffer rank = Buffer::Decl({all}, t, "rank"), spare = Buffer::Decl({all}, t, "spare");
    Stmt run = Loop("b", s.images, [&](const Var& b) {
      Stmt classes = Loop("c", s.classes, [&](const Var& c) {
        return s.OfClass(in, b, c, most, iou, least, [&](const PrimExpr& box) {
          return Steps({numbered({c, box}, found, {total.Get()}), total.Set(total.Get() + one)});
        });
      });
      auto score = [&](const PrimExpr& i) {
        return Load(in[1], {b, Load(found, {i, zero}), Load(found, {i, one})});
      };
      return Steps(
          {total.Set(zero), classes, Let("n", total.Get(), [&](const Var& n) {
             Stmt sort = MergeSort{n, score, false, rank, spare}.Run();
             Stmt write = Loop("k", n, [&](const Var& k) {
               PrimExpr from = Load(rank, {k});
               std::vector<PrimExpr> pair = {Load(found, {from, zero}), Load(found, {from, one})};
               return Steps({numbered(pair, out[0], {b, k}), Store(out[1], {b, k}, score(from))});
             });
             return Steps({sort, write, Store(out[2], {b}, n)});
           })});
    });
    Stmt program = Steps({Zeros(out[0]), Zeros(out[1]), run});
    for (const Buffer& buffer : {total.buffer, found, rank, spare})
      program = WithBuffer(buffer, program);
    return s.WithBuffers(program);
  };
  return Extern(
      kNms, inputs,
      {{{s.images, all, PrimExpr(2)}, wide}, {{s.images, all}, scores->dtype}, {{s.images}, wide}},
      body);
}
/// Boxes whose score is above a threshold moved to the front: how many, the boxes, where they were.
Array<Tensor> GetValidCounts(const Tensor& data, const Operand& score_threshold, int64_t id_index,
                             int64_t score_index) {
  constexpr const char* kOp = "get_valid_counts";
  CheckRank(kOp, "boxes (batch, boxes, entries)", data, 3);
  Array<Tensor> inputs = {data};
  Threshold least(score_threshold, &inputs);
  const PrimExpr &images = data->shape[0], &count = data->shape[1], &entries = data->shape[2];
  DataType t = count.dtype();
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    Scalar n("n", t);
    auto entry = [&](const Var& b, const Var& i, int64_t k) {
      return Load(in[0], {b, i, MakeConst(t, k)});
    };
    Stmt run = Loop("b", images, [&](const Var& b) {
      Stmt clear = Loop("i", count, [&](const Var& i) {
        Stmt row = Loop("k", entries, [&](const Var& k) {
          return Store(out[1], {b, i, k}, MakeConst(data->dtype, -1));
        });
        return Steps({row, Store(out[2], {b, i}, PrimExpr(-1))});
      });
      Stmt walk = Loop("i", count, [&](const Var& i) {
        PrimExpr valid = entry(b, i, score_index) > least.Get(in, data->dtype);
        if (id_index >= 0) valid = valid && entry(b, i, id_index) >= MakeZero(data->dtype);
        Stmt move = Loop("k", entries, [&](const Var& k) {
          return Store(out[1], {b, n.Get(), k}, Load(in[0], {b, i, k}));
        });
        return Stmt(IfThenElse(valid, Steps({move, Store(out[2], {b, n.Get()}, i),
                                             n.Set(n.Get() + MakeConst(t, 1))})));
      });
      return Steps({clear, n.Set(MakeZero(t)), walk, Store(out[0], {b}, n.Get())});
    });
    return WithBuffer(n.buffer, run);
  };
  DataType index = DataType::Int(32);
  return Extern(kOp, inputs,
                {{{images}, index}, {data->shape, data->dtype}, {{images, count}, index}}, body);
}

TVM_REGISTER() {
  Def("topi.vision.all_class_non_max_suppression", &AllClassNms,
      "The boxes of every class that overlap no better one too much.", Arg("boxes"), Arg("scores"),
      Arg("max_output_boxes_per_class"), Arg("iou_threshold"), Arg("score_threshold"),
      Arg("output_format", "onnx"), Arg("output_shape", nullptr));
  Def("topi.vision.get_valid_counts", &GetValidCounts,
      "Boxes whose score is above a threshold: how many, the boxes, where they were.", Arg("data"),
      Arg("score_threshold", 0), Arg("id_index", 0), Arg("score_index", 1));
}
}  // namespace
}  // namespace tvm::topi::vision
