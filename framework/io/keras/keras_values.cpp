#include <tessera/framework/io/keras/keras_values.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/internal/read_blocks.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

at::Tensor read_rectangle(const Hdf5File& file, const Hdf5Dataset& dataset, const Rectangle& area) {
  const at::ScalarType stored = *safetensors_scalar_type(dataset.dtype);
  at::Tensor block = at::empty(area.shape(), at::TensorOptions().dtype(stored));
  file.read(dataset, area,
            {static_cast<std::byte*>(block.data_ptr()), static_cast<size_t>(block.nbytes())});
  return block;
}

/// Reads the elements of datasets that follow each other along the last axis.
at::Tensor read_gates(const KerasData& data, const Rectangle& area, at::ScalarType target) {
  const Interval columns{area.begin.back(), area.end.back()};
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  const auto add = [&](const Hdf5Dataset& dataset) {
    const Interval own = intersect(columns, {begin, begin + dataset.shape.back()});
    Rectangle part = area;
    part.begin.back() = own.lo - begin;
    part.end.back() = own.hi - begin;
    if (!own.empty()) parts.push_back(read_rectangle(*data.file, dataset, part).to(target));
    begin += dataset.shape.back();
  };
  add(*data.dataset);
  for (const Hdf5Dataset* dataset : data.more) add(*dataset);
  return parts.empty() ? at::empty(area.shape(), at::TensorOptions().dtype(target))
                       : at::cat(parts, -1);
}

at::Tensor read_area(const KerasData& data, const Rectangle& area, at::ScalarType target) {
  if (!data.more.empty()) return read_gates(data, area, target);
  if (!data.unit_axis) return read_rectangle(*data.file, *data.dataset, area).to(target);
  const auto axis = static_cast<int64_t>(*data.unit_axis);
  Rectangle stored = area;
  stored.begin.insert(stored.begin.begin() + axis, 0);
  stored.end.insert(stored.end.begin() + axis, 1);
  return read_rectangle(*data.file, *data.dataset, stored).squeeze(axis).to(target);
}

DTensor read_variable(const KerasMatch& match) {
  const Variable& variable = match.value.variable;
  const ShardingPtr sharding = intern(variable.shape(), variable.dtype(), variable.layout());
  return read_blocks(sharding, [&](const std::vector<Interval>& intervals) {
    const Rectangle area{tile_begin(intervals), tile_end(intervals)};
    return read_area(match.data, area, variable.dtype());
  });
}

double read_number(const std::string& path, const KerasMatch& match) {
  const KerasValue& value = match.value;
  const double number = read_area(match.data, full_rectangle({}), at::kDouble).item<double>();
  if (number >= value.min_number && number <= value.max_number) return number;
  throw FileError(path,
                  str(in_quotes(match.data.dataset->path), " is ", in_quotes(value.what),
                      ", a number of at least ", value.min_number),
                  str(number), "save the model again");
}

}  // namespace

std::string describe_mismatch(const KerasMatch& match) {
  const Hdf5Dataset& dataset = *match.data.dataset;
  Shape shape = dataset.shape;
  if (match.data.unit_axis)
    shape.erase(shape.begin() + static_cast<int64_t>(*match.data.unit_axis));
  bool fits = true;
  for (const Hdf5Dataset* more : match.data.more) {
    fits = fits && !shape.empty() && more->shape == dataset.shape && more->dtype == dataset.dtype;
    if (fits) shape.back() += dataset.shape.back();
  }
  const auto stored = safetensors_scalar_type(dataset.dtype);
  fits = fits && stored && shape == match.value.shape() &&
         at::isFloatingType(*stored) == at::isFloatingType(match.value.type());
  if (fits) return "";
  const std::string times =
      match.data.more.empty() ? "" : str(match.data.more.size() + 1, " gates, the first of ");
  return str(times, to_string(dataset.shape), " of ",
             dataset.dtype.empty() ? "another type" : dataset.dtype);
}

void restore_values(const Mesh& mesh, const std::string& path,
                    const std::vector<KerasMatch>& matches) {
  std::vector<DTensor> values(matches.size());
  std::vector<double> numbers(matches.size());
  collectively(mesh, path, [&] {
    for (size_t i = 0; i < matches.size(); ++i) {
      if (matches[i].value.variable.defined()) {
        values[i] = read_variable(matches[i]);
      } else {
        numbers[i] = read_number(path, matches[i]);
      }
    }
  });
  for (size_t i = 0; i < matches.size(); ++i) {
    Variable variable = matches[i].value.variable;
    if (variable.defined()) {
      variable.assign(std::exchange(values[i], {}));
    } else {
      matches[i].value.set_number(numbers[i]);
    }
  }
}

}  // namespace tessera::detail
