#include <algorithm>
#include <atomic>
#include <utility>

#include <tessera/datasets/pipeline/internal/batched_elements.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;
using Numbers = std::vector<int64_t>;

Numbers numbers_between(int64_t begin, int64_t end) {
  Numbers numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

int64_t batches_of(int64_t rows, int64_t size, bool drop_remainder) {
  if (rows == no_end) return no_end;
  return rows / size + (!drop_remainder && rows % size != 0 ? 1 : 0);
}

/// Batches of `size` consecutive rows.
class FixedBatches : public BatchedElements {
 public:
  FixedBatches(const PipelineStage& stage, Elements rows, const PassOptions& reading, int64_t size,
               bool drop_remainder)
      : BatchedElements(std::move(rows), reading.layouts),
        stage_(stage),
        size_(size),
        count_(batches_of(rows_->size().value(), size, drop_remainder)) {}
  std::optional<int64_t> size() const override { return count_; }

 protected:
  Examples batch(int64_t number) const override {
    return batch_of(rows_of(number), [&](const std::vector<Examples>& rows) {
      return stacked(rows, stage_.where(number));
    });
  }
  Numbers rows_of(int64_t number) const {
    const int64_t begin = number * size_;
    return numbers_between(begin, std::min(begin + size_, rows_->size().value()));
  }

  const PipelineStage& stage_;

 private:
  int64_t size_, count_;
};

/// Batches of `size` consecutive rows, padded to one shape. If that is the longest row of the
/// batch, all rows of the batch are read.
class PaddedBatches final : public FixedBatches {
 public:
  PaddedBatches(const PipelineStage& stage, Elements rows, const PassOptions& reading, int64_t size,
                const PaddedBatchOptions& options)
      : FixedBatches(stage, std::move(rows), reading, size, options.drop_remainder),
        padding_{options.x_shapes, options.y_shapes, options.x_value, options.y_value} {}

 protected:
  Examples batch(int64_t number) const override {
    const auto make = [&](const std::vector<Examples>& rows) {
      return padded(rows, padding_of(rows, padding_, stage_.where(number)));
    };
    if (all_fully_defined(padding_.x) && !depends_on_labels_) {
      Examples mine = batch_of(rows_of(number), [&](const std::vector<Examples>& rows) {
        const auto has_axes = [](const at::Tensor& label) { return label.dim() > 0; };
        if (!all_fully_defined(padding_.y))
          depends_on_labels_ = std::ranges::any_of(rows[0].y, has_axes);
        return make(rows);
      });
      if (!depends_on_labels_) return mine;
    }
    return part_of(make(rows_->get(rows_of(number))), layouts_);
  }

 private:
  static bool all_fully_defined(const std::vector<Shape>& shapes) {
    const auto is_fully_defined = [](const Shape& shape) {
      return shape.empty() || std::ranges::min(shape) >= 0;
    };
    return !shapes.empty() && std::ranges::all_of(shapes, is_fully_defined);
  }

  RowPadding padding_;
  /// Whether labels have axes of unspecified extent; learned from the first row.
  mutable std::atomic<bool> depends_on_labels_ = false;
};

class BatchStage : public PipelineStage {
 public:
  BatchStage(std::string kind, PipelineStagePtr stage, int64_t size, bool drop_remainder)
      : PipelineStage(std::move(kind), {std::move(stage)}),
        size_(size),
        drop_remainder_(drop_remainder) {
    check_at_least(where(), "size", size, 1);
    check_rows();
  }
  Elements open(const PassOptions& reading) const override {
    return std::make_shared<FixedBatches>(*this, before().open(reading), reading, size_,
                                          drop_remainder_);
  }
  std::optional<int64_t> count() const override {
    const std::optional<int64_t> rows = before().count();
    return rows ? std::optional(batches_of(*rows, size_, drop_remainder_)) : std::nullopt;
  }
  bool batched() const override { return true; }

 protected:
  std::string arguments() const override { return str(" ", size_, drop_remainder_ ? " full" : ""); }
  int64_t size_;

 private:
  bool drop_remainder_;
};

class PaddedBatchStage final : public BatchStage {
 public:
  PaddedBatchStage(PipelineStagePtr stage, int64_t size, PaddedBatchOptions options)
      : BatchStage("padded_batch", std::move(stage), size, options.drop_remainder),
        options_(std::move(options)) {}
  Elements open(const PassOptions& reading) const override {
    return std::make_shared<PaddedBatches>(*this, before().open(reading), reading, size_, options_);
  }
  std::vector<Shape> input_shapes() const override;

 protected:
  std::string arguments() const override {
    std::string text = str(BatchStage::arguments(), " ", options_.x_value, " ", options_.y_value);
    for (const auto* shapes : {&options_.x_shapes, &options_.y_shapes}) {
      for (const Shape& shape : *shapes) text += " " + to_string(shape);
    }
    return text;
  }

 private:
  PaddedBatchOptions options_;
};

/// Returns the shapes of the rows' inputs, with -1 for axes that differ between rows.
std::vector<Shape> common_shapes(std::span<const Examples> rows) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < rows[0].x.size(); ++i) {
    Shape shape = rows[0].x[i].sizes().vec();
    for (const Examples& row : rows) {
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (row.x[i].size(int64_t(axis)) != shape[axis]) shape[axis] = -1;
      }
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::vector<Shape> PaddedBatchStage::input_shapes() const {
  const Elements rows = before().open({});
  const int64_t count = std::min(size_, rows->size().value());
  if (count == 0) return before().input_shapes();
  const std::vector<Examples> first = rows->get(numbers_between(0, count));
  padding_of(first, {}, where(0));
  std::vector<Shape> shapes = common_shapes(first);
  for (size_t i = 0; i < options_.x_shapes.size() && i < shapes.size(); ++i) {
    for (size_t axis = 0; axis < shapes[i].size() && axis < options_.x_shapes[i].size(); ++axis) {
      const int64_t extent = options_.x_shapes[i][axis];
      if (extent >= 0) shapes[i][axis] = extent;
    }
  }
  return shapes;
}

}  // namespace

PipelineStagePtr batch_stage(PipelineStagePtr before, int64_t size, bool drop_remainder) {
  return std::make_shared<BatchStage>("batch", std::move(before), size, drop_remainder);
}

PipelineStagePtr padded_batch_stage(PipelineStagePtr before, int64_t size,
                                    const PaddedBatchOptions& options) {
  return std::make_shared<PaddedBatchStage>(std::move(before), size, options);
}

}  // namespace tessera::detail
