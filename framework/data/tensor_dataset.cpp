#include <tessera/framework/data/tensor_dataset.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/internal/pinned_batches.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Calls visit(tensor, name) for every tensor.
template <class Visit>
void for_each_tensor(const Examples& all, const Visit& visit) {
  const auto each = [&](const std::vector<at::Tensor>& tensors, const std::string& name) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      visit(tensors[i], tensors.size() == 1 ? name : str(name, "[", i, "]"));
    }
  };
  each(all.x, "x");
  each(all.y, "y");
  each(all.sample_weight, "sample_weight");
}

void check_tensor(const at::Tensor& tensor, const std::string& where) {
  if (!tensor.defined()) {
    throw ShapeError(where, "a dataset holds tensors", "an undefined tensor", "pass a tensor");
  }
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    throw ConfigError(where, "a dataset holds dense tensors on the host", tensor.toString(),
                      "copy it with .to_dense().cpu()");
  }
  check_real(tensor, where);
  if (tensor.dim() == 0) {
    throw ShapeError(where, "axis 0 of a dataset's tensor counts the rows", "shape ()",
                     "give it an axis of rows");
  }
}

void check_examples(const Examples& all, const std::string& name) {
  if (all.x.empty()) {
    throw ShapeError(name, "a dataset has at least one input x", "none", "pass a tensor as x");
  }
  for_each_tensor(all, [&](const at::Tensor& tensor, const std::string& tensor_name) {
    const std::string where = name + ", " + tensor_name;
    check_tensor(tensor, where);
    if (tensor.size(0) == all.x[0].size(0)) return;
    throw ShapeError(where, "all tensors of a dataset have equally many rows",
                     str(tensor.size(0), " rows, but ", all.x[0].size(0), " in the first input"),
                     "pass one row for every example");
  });
}

/// Returns whether the row indices are consecutive. Throws unless all are in range.
bool consecutive(std::span<const int64_t> rows, int64_t size, const std::string& name) {
  bool result = true;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= size) {
      throw ShapeError(name, str("a row number lies in [0, ", size, ")"), str(rows[i]),
                       "ask for rows that the dataset has");
    }
    result = result && rows[i] == rows[0] + static_cast<int64_t>(i);
  }
  return result;
}

/// Applies `change` to every tensor.
template <class Change>
Examples transformed(const Examples& all, const Change& change) {
  Examples result;
  for (const at::Tensor& x : all.x) result.x.push_back(change(x));
  for (const at::Tensor& y : all.y) result.y.push_back(change(y));
  for (const at::Tensor& weight : all.sample_weight) {
    result.sample_weight.push_back(change(weight));
  }
  return result;
}

/// Copies rows of a contiguous tensor into `out`, on the threads of ATen's loops.
void copy_rows(const at::Tensor& tensor, std::span<const int64_t> rows, const at::Tensor& out) {
  constexpr size_t min_bytes_per_thread = 1 << 18;
  const auto count = static_cast<int64_t>(rows.size());
  if (out.numel() == 0) return;
  const size_t row_bytes = out.nbytes() / rows.size();
  const auto* const from = static_cast<const char*>(tensor.const_data_ptr());
  auto* const to = static_cast<char*>(out.mutable_data_ptr());
  const auto grain = static_cast<int64_t>(min_bytes_per_thread / row_bytes + 1);
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * row_bytes,
                  from + static_cast<size_t>(rows[static_cast<size_t>(i)]) * row_bytes, row_bytes);
    }
  });
}

}  // namespace

TensorDataset::TensorDataset(Examples all, std::string name)
    : all_(std::move(all)), name_(std::move(name)) {
  check_examples(all_, name_);
}

TensorDataset::TensorDataset(at::Tensor x, at::Tensor y, std::string name)
    : TensorDataset(y.defined() ? Examples{.x = {std::move(x)}, .y = {std::move(y)}}
                                : Examples{.x = {std::move(x)}},
                    std::move(name)) {}

Examples TensorDataset::get(std::span<const int64_t> rows) const {
  const auto count = static_cast<int64_t>(rows.size());
  const auto batch = [&](const at::Tensor& tensor) {
    Shape shape = tensor.sizes().vec();
    shape[0] = count;
    return empty_batch(shape, tensor.scalar_type());
  };
  if (consecutive(rows, size(), name_)) {
    const int64_t first = rows.empty() ? 0 : rows[0];
    return transformed(all_, [&](const at::Tensor& tensor) {
      return batch(tensor).copy_(tensor.narrow(0, first, count));
    });
  }
  return transformed(all_, [&](const at::Tensor& tensor) {
    at::Tensor out = batch(tensor);
    if (tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) {
      copy_rows(tensor, rows, out);
    } else {
      at::index_select_out(out, tensor, 0, at::tensor(at::IntArrayRef(rows.data(), rows.size())));
    }
    return out;
  });
}

std::vector<Shape> TensorDataset::input_shapes() const {
  std::vector<Shape> shapes;
  for (const at::Tensor& x : all_.x) shapes.emplace_back(x.sizes().begin() + 1, x.sizes().end());
  return shapes;
}

TensorDataset TensorDataset::take(int64_t n) const {
  if (n < 0 || n > size()) {
    throw ConfigError(name_, str("take() returns 0 to ", size(), " rows"), str(n),
                      "ask for rows that the dataset has");
  }
  return TensorDataset(
      transformed(all_, [&](const at::Tensor& tensor) { return tensor.narrow(0, 0, n); }), name_);
}

DatasetHandle::DatasetHandle(const Examples& all) : DatasetHandle(TensorDataset(all)) {}

DatasetHandle::DatasetHandle(const at::Tensor& x, const at::Tensor& y,
                             const at::Tensor& sample_weight)
    : DatasetHandle(examples_of(x, y, sample_weight)) {}

Examples detail::examples_of(const at::Tensor& x, const at::Tensor& y,
                             const at::Tensor& sample_weight) {
  Examples all{.x = {x}};
  if (y.defined()) all.y = {y};
  if (sample_weight.defined()) all.sample_weight = {sample_weight};
  return all;
}

}  // namespace tessera
