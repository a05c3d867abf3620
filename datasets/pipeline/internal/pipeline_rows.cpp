#include <tessera/datasets/pipeline/internal/pipeline_rows.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Tensors = std::vector<at::Tensor> Examples::*;
constexpr Tensors all_tensors[] = {&Examples::x, &Examples::y, &Examples::sample_weight};

template <class Change>
Examples changed(const Examples& element, const Change& change) {
  Examples result;
  result.part = element.part;
  for (const Tensors tensors : all_tensors) {
    for (const at::Tensor& tensor : element.*tensors) (result.*tensors).push_back(change(tensor));
  }
  return result;
}

std::string name_of(Tensors tensors) {
  return tensors == &Examples::x ? "x" : tensors == &Examples::y ? "y" : "sample_weight";
}

std::string dtype_and_shape(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return str(at::toString(tensor.scalar_type()), " ", to_string(tensor.sizes().vec()));
}

/// Throws ShapeError unless each row has as many tensors as the first, and `same` holds for each
/// pair of tensors.
template <class Same>
void check_rows_like_first(std::span<const Examples> rows, const std::string& where,
                           const std::string& expected, const std::string& fix, const Same& same) {
  for (const Tensors tensors : all_tensors) {
    const auto& first = rows[0].*tensors;
    for (const Examples& row : rows) {
      const auto& own = row.*tensors;
      if (own.size() != first.size()) {
        throw ShapeError(str(where, ", ", name_of(tensors)),
                         "rows of a batch have equally many tensors",
                         str(own.size(), " and ", first.size()), "give every row the same");
      }
      for (size_t i = 0; i < own.size(); ++i) {
        if (own[i].defined() && first[i].defined() && same(own[i], first[i])) continue;
        throw ShapeError(str(where, ", ", name_of(tensors)), expected,
                         str(dtype_and_shape(first[i]), " and ", dtype_and_shape(own[i])), fix);
      }
    }
  }
}

/// Returns `requested` with each -1 replaced by the longest extent of the rows.
std::vector<Shape> shapes_of(std::span<const Examples> rows, Tensors tensors,
                             const std::vector<Shape>& requested, const std::string& where) {
  const auto& first = rows[0].*tensors;
  const std::string name = str(where, ", ", name_of(tensors));
  if (!requested.empty() && requested.size() != first.size()) {
    throw ShapeError(name, "there is a shape for each tensor",
                     str(requested.size(), " for ", first.size()), "give one for each");
  }
  std::vector<Shape> shapes;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto rank = static_cast<size_t>(first[i].dim());
    Shape shape = requested.empty() ? Shape(rank, -1) : requested[i];
    if (shape.size() != rank) {
      throw ShapeError(name, str("rows have the axes of ", to_string(shape)),
                       dtype_and_shape(first[i]), "give an extent for each axis of a row");
    }
    const Shape max_shape = shape;
    for (const Examples& row : rows) {
      const at::Tensor& tensor = (row.*tensors)[i];
      for (size_t axis = 0; axis < rank; ++axis) {
        const int64_t extent = tensor.size(int64_t(axis));
        if (max_shape[axis] < 0) shape[axis] = std::max(shape[axis], extent);
        if (extent <= shape[axis]) continue;
        throw ShapeError(name, "rows fit into " + to_string(max_shape), dtype_and_shape(tensor),
                         "pass a larger shape, or truncate the rows");
      }
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

at::Tensor padded_tensor(std::span<const Examples> rows, Tensors tensors, size_t i,
                         const Shape& shape, double value) {
  Shape all = shape;
  all.insert(all.begin(), std::ssize(rows));
  at::Tensor batch = at::full(all, value, (rows[0].*tensors)[i].options());
  for (size_t r = 0; r < rows.size(); ++r) {
    const at::Tensor& row = (rows[r].*tensors)[i];
    at::Tensor slot = batch.select(0, int64_t(r));
    for (int64_t axis = 0; axis < row.dim(); ++axis) {
      slot = slot.narrow(axis, 0, row.size(axis));
    }
    slot.copy_(row);
  }
  return batch;
}

}  // namespace

Examples rows_between(const Examples& batch, Interval rows) {
  return changed(batch,
                 [&](const at::Tensor& t) { return t.narrow(0, rows.lo, rows.hi - rows.lo); });
}

Examples row_of(const Examples& batch, int64_t row) {
  return changed(batch, [&](const at::Tensor& tensor) { return tensor.select(0, row); });
}

int64_t held_rows(const Examples& batch) {
  for (const Tensors tensors : all_tensors) {
    if (!(batch.*tensors).empty()) return (batch.*tensors)[0].size(0);
  }
  return 0;
}

Examples cloned(const Examples& element) {
  return changed(element,
                 [](const at::Tensor& t) { return t.clone(at::MemoryFormat::Contiguous); });
}

Examples stacked(std::span<const Examples> rows, const std::string& where) {
  check_rows_like_first(rows, where, "rows of a batch have one shape and dtype",
                        "use padded_batch(), or make them equal with map()",
                        [](const at::Tensor& own, const at::Tensor& first) {
                          return own.sizes() == first.sizes() &&
                                 own.scalar_type() == first.scalar_type();
                        });
  Examples batch;
  for (const Tensors tensors : all_tensors) {
    for (size_t i = 0; i < (rows[0].*tensors).size(); ++i) {
      std::vector<at::Tensor> row_tensors;
      for (const Examples& row : rows) row_tensors.push_back((row.*tensors)[i]);
      (batch.*tensors).push_back(at::stack(row_tensors));
    }
  }
  return batch;
}

RowPadding padding_of(std::span<const Examples> rows, const RowPadding& requested,
                      const std::string& where) {
  check_rows_like_first(
      rows, where, "rows of a batch have equally many axes and one dtype",
      "make them equal with map()", [](const at::Tensor& own, const at::Tensor& first) {
        return own.dim() == first.dim() && own.scalar_type() == first.scalar_type();
      });
  RowPadding all = requested;
  all.x = shapes_of(rows, &Examples::x, requested.x, where);
  all.y = shapes_of(rows, &Examples::y, requested.y, where);
  return all;
}

Examples padded(std::span<const Examples> rows, const RowPadding& padding) {
  Examples batch;
  for (size_t i = 0; i < rows[0].x.size(); ++i) {
    batch.x.push_back(padded_tensor(rows, &Examples::x, i, padding.x[i], padding.x_value));
  }
  for (size_t i = 0; i < rows[0].y.size(); ++i) {
    batch.y.push_back(padded_tensor(rows, &Examples::y, i, padding.y[i], padding.y_value));
  }
  for (size_t i = 0; i < rows[0].sample_weight.size(); ++i) {
    std::vector<at::Tensor> weights;
    for (const Examples& row : rows) weights.push_back(row.sample_weight[i]);
    batch.sample_weight.push_back(at::stack(weights));
  }
  return batch;
}

std::optional<RowPart> part_to_read(int64_t rows, const LayoutMap& layouts) {
  if (!layouts.defined()) return std::nullopt;
  const RowPart part = local_part(rows, layouts);
  if (part.rows.size() == part.of) return std::nullopt;
  return part;
}

Examples part_of(Examples batch, const LayoutMap& layouts) {
  const std::optional<RowPart> part = part_to_read(held_rows(batch), layouts);
  if (!part) return batch;
  Examples mine = cloned(rows_between(batch, part->rows));
  mine.part = part;
  return mine;
}

}  // namespace tessera::detail
