#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include <tessera/datasets/pipeline/internal/batched_elements.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;
using Numbers = std::vector<int64_t>;

/// The length and the tensor shapes of a row.
struct Measured {
  int64_t length = 0;
  std::vector<Shape> x, y;
};

/// Batches of rows from one bucket each.
class BucketedElements final : public BatchedElements {
 public:
  struct Bucketed {
    Numbers rows;
    RowPadding padding;
  };

  BucketedElements(Elements rows, const PassOptions& reading, std::vector<Bucketed> batches)
      : BatchedElements(std::move(rows), reading.layouts), batches_(std::move(batches)) {}
  std::optional<int64_t> size() const override { return std::ssize(batches_); }

 protected:
  Examples batch(int64_t number) const override {
    const Bucketed& bucketed = batches_[static_cast<size_t>(number)];
    return batch_of(bucketed.rows, [&](const std::vector<Examples>& rows) {
      return padded(rows, bucketed.padding);
    });
  }

 private:
  std::vector<Bucketed> batches_;
};

class BucketStage final : public PipelineStage {
 public:
  BucketStage(PipelineStagePtr stage, DataPipeline::Length length, BucketByLengthOptions options)
      : PipelineStage("bucket_by_length", {std::move(stage)}),
        length_(std::move(length)),
        options_(std::move(options)) {
    check_at_least(where(), "threads", options_.threads, 1);
    check_rows();
    check_has_end();
    check_buckets();
  }
  Elements open(const PassOptions& reading) const override {
    const Elements rows = before().open(reading);
    return std::make_shared<BucketedElements>(rows, reading, batches_of_rows(measured(*rows)));
  }
  std::optional<int64_t> count() const override { return std::nullopt; }
  bool batched() const override { return true; }
  std::vector<Shape> input_shapes() const override;

 private:
  using Bucketed = BucketedElements::Bucketed;

  void check_buckets() const;
  std::vector<Measured> measured(const PipelineElements& rows) const;
  std::vector<Bucketed> batches_of_rows(const std::vector<Measured>& rows) const;
  Bucketed bucketed(Numbers rows, size_t bucket, const std::vector<Measured>& all,
                    const std::vector<Shape>& x, const std::vector<Shape>& y) const;

  DataPipeline::Length length_;
  BucketByLengthOptions options_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<int64_t, Measured> known_;
};

void BucketStage::check_buckets() const {
  const auto& ends = options_.boundaries;
  if (std::ranges::adjacent_find(ends, std::greater_equal()) != ends.end()) {
    throw ConfigError(where(), "boundaries ascend", to_string(ends), "sort them");
  }
  if (options_.batch_sizes.size() != ends.size() + 1) {
    throw ConfigError(where(), str("there are batch sizes of ", ends.size() + 1, " buckets"),
                      str(options_.batch_sizes.size()), "give one more than boundaries");
  }
  for (const int64_t size : options_.batch_sizes) check_at_least(where(), "a batch size", size, 1);
}

std::vector<Shape> shapes_of_tensors(const std::vector<at::Tensor>& tensors) {
  std::vector<Shape> shapes;
  for (const at::Tensor& tensor : tensors) shapes.push_back(tensor.sizes().vec());
  return shapes;
}

/// Measures all rows, but for those that are the same in every pass and were measured before.
std::vector<Measured> BucketStage::measured(const PipelineElements& rows) const {
  const std::lock_guard lock(mutex_);
  const int64_t size = rows.size().value();
  std::vector<Measured> all(static_cast<size_t>(size));
  Numbers unmeasured;
  for (int64_t i = 0; i < size; ++i) {
    const std::optional<int64_t> original = rows.original(i);
    const auto known = original ? known_.find(*original) : known_.end();
    if (known == known_.end()) {
      unmeasured.push_back(i);
    } else {
      all[static_cast<size_t>(i)] = known->second;
    }
  }
  const auto measure = [&](std::span<const int64_t> interval) {
    Numbers numbers;
    for (const int64_t i : interval) numbers.push_back(unmeasured[static_cast<size_t>(i)]);
    const std::vector<Examples> elements = rows.get(numbers);
    for (size_t i = 0; i < elements.size(); ++i) {
      try {
        all[static_cast<size_t>(numbers[i])] = {length_(elements[i]),
                                                shapes_of_tensors(elements[i].x),
                                                shapes_of_tensors(elements[i].y)};
      } catch (...) {
        rethrow_in_stage(str(where(), ", row ", numbers[i]));
      }
    }
  };
  for_each_interval(std::ssize(unmeasured), options_.threads, measure);
  for (const int64_t i : unmeasured) {
    const std::optional<int64_t> original = rows.original(i);
    if (original) known_[*original] = all[static_cast<size_t>(i)];
  }
  return all;
}

/// The largest extent of each axis, and the common one (-1 if rows differ).
struct Extents {
  std::vector<Shape> largest, common;

  void add(const std::vector<Shape>& shapes, const std::string& where) {
    if (largest.empty()) largest = common = shapes;
    const auto rank = [](const Shape& a, const Shape& b) { return a.size() == b.size(); };
    if (!std::ranges::equal(shapes, largest, rank)) {
      throw ShapeError(where, "rows have equally many tensors and axes", "other ones than in row 0",
                       "make them equal with map()");
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
        if (shapes[i][axis] != common[i][axis]) common[i][axis] = -1;
        largest[i][axis] = std::max(largest[i][axis], shapes[i][axis]);
      }
    }
  }
};

std::vector<BucketedElements::Bucketed> BucketStage::batches_of_rows(
    const std::vector<Measured>& rows) const {
  Extents x, y;
  for (size_t i = 0; i < rows.size(); ++i) {
    x.add(rows[i].x, str(where(), ", row ", i));
    y.add(rows[i].y, str(where(), ", row ", i));
  }
  std::vector<Bucketed> batches;
  std::vector<Numbers> waiting(options_.batch_sizes.size());
  const auto close = [&](size_t bucket) {
    batches.push_back(
        bucketed(std::exchange(waiting[bucket], {}), bucket, rows, x.common, y.common));
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& ends = options_.boundaries;
    const auto bucket =
        static_cast<size_t>(std::ranges::upper_bound(ends, rows[i].length) - ends.begin());
    if (options_.pad_to_boundary && bucket == ends.size()) {
      throw ConfigError(str(where(), ", row ", i),
                        "with pad_to_boundary no row is in the last bucket",
                        str("length ", rows[i].length), "add a boundary above it");
    }
    waiting[bucket].push_back(int64_t(i));
    if (std::ssize(waiting[bucket]) == options_.batch_sizes[bucket]) close(bucket);
  }
  for (size_t bucket = 0; bucket < waiting.size() && !options_.drop_remainder; ++bucket) {
    if (!waiting[bucket].empty()) close(bucket);
  }
  return batches;
}

/// Returns a batch of `rows`. `x` and `y`: extents that all rows have in common, -1 if they differ.
BucketedElements::Bucketed BucketStage::bucketed(Numbers rows, size_t bucket,
                                                 const std::vector<Measured>& all,
                                                 const std::vector<Shape>& x,
                                                 const std::vector<Shape>& y) const {
  Extents own_x, own_y;
  for (const int64_t row : rows) {
    own_x.add(all[static_cast<size_t>(row)].x, where());
    own_y.add(all[static_cast<size_t>(row)].y, where());
  }
  const auto to_end = [&](std::vector<Shape>& own, const std::vector<Shape>& common) {
    for (size_t i = 0; i < own.size(); ++i) {
      for (size_t axis = 0; axis < own[i].size(); ++axis) {
        if (common[i][axis] < 0) {
          own[i][axis] = std::max(own[i][axis], options_.boundaries[bucket] - 1);
        }
      }
    }
  };
  if (options_.pad_to_boundary) {
    to_end(own_x.largest, x);
    to_end(own_y.largest, y);
  }
  return {std::move(rows), {own_x.largest, own_y.largest, options_.x_value, options_.y_value}};
}

std::vector<Shape> BucketStage::input_shapes() const {
  const std::vector<Measured> rows = measured(*before().open({}));
  if (rows.empty()) return before().input_shapes();
  Extents x;
  for (const Measured& row : rows) x.add(row.x, where());
  return x.common;
}

}  // namespace

PipelineStagePtr bucket_stage(PipelineStagePtr before, DataPipeline::Length length,
                              const BucketByLengthOptions& options) {
  return std::make_shared<BucketStage>(std::move(before), std::move(length), options);
}

}  // namespace tessera::detail
