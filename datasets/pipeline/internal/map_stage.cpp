#include <algorithm>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_rows.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/internal/row_part_scope.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {
namespace {

/// Throws ShapeError unless all tensors of a batch still have `rows` rows.
void check_row_count(const Examples& batch, int64_t rows, const std::string& where) {
  for (const auto* tensors : {&batch.x, &batch.y, &batch.sample_weight}) {
    for (const at::Tensor& tensor : *tensors) {
      if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) == rows) continue;
      throw ShapeError(where, str("the function keeps the ", rows, " rows of a batch"),
                       tensor.defined() ? "shape " + to_string(tensor.sizes().vec()) : "undefined",
                       "change the number of rows before batch()");
    }
  }
}

class MapStage final : public PipelineStage {
 public:
  MapStage(PipelineStagePtr stage, DataPipeline::SeededFunction function, bool seeded,
           const MapOptions& options)
      : PipelineStage("map", {std::move(stage)}),
        function_(std::move(function)),
        seeded_(seeded),
        options_(options) {
    check_at_least(where(), "threads", options_.threads, 1);
    if (options_.whole_batch && !batched()) {
      throw ConfigError(where(), "whole_batch is for batches", "rows", "put it after batch()");
    }
  }

  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override;
  std::vector<Shape> input_shapes() const override { return first_input_shapes(); }
  int64_t threads() const override { return std::max(options_.threads, before().threads()); }

 private:
  friend class MapElements;
  DataPipeline::SeededFunction function_;
  bool seeded_;  ///< whether the function uses its seed
  MapOptions options_;
};

class MapElements final : public PipelineElements {
 public:
  MapElements(const MapStage& stage, const PassOptions& reading,
              std::shared_ptr<const PipelineElements> before)
      : stage_(stage),
        layouts_(stage.options_.whole_batch ? reading.layouts : LayoutMap()),
        seed_(fold_in(stage.options_.seed.value_or(
                          fold_in({global_seed(), 0}, static_cast<uint64_t>(stage.position()))),
                      reading.pass)),
        before_(std::move(before)) {}

  std::optional<int64_t> size() const override { return before_->size(); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> elements = before_->get(numbers);
    for (size_t i = 0; i < elements.size(); ++i) {
      try {
        elements[i] = made(std::move(elements[i]), numbers[i]);
      } catch (...) {
        rethrow_in_stage(stage_.where(numbers[i]));
      }
    }
    return elements;
  }
  std::optional<int64_t> original(int64_t number) const override {
    return stage_.seeded_ ? std::nullopt : before_->original(number);
  }

 private:
  Examples made(Examples&& element, int64_t number) const {
    const Seed seed = fold_in(seed_, static_cast<uint64_t>(number));
    if (!stage_.batched()) return stage_.function_(std::move(element), seed);
    const std::optional<RowPart> part = element.part;
    const int64_t rows = held_rows(element);
    const RowPartScope scope(part);
    Examples result = stage_.function_(std::move(element), seed);
    check_row_count(result, rows, stage_.where(number));
    result.part = part;
    return part_of(std::move(result), layouts_);
  }

  const MapStage& stage_;
  LayoutMap layouts_;
  Seed seed_;
  std::shared_ptr<const PipelineElements> before_;
};

std::shared_ptr<const PipelineElements> MapStage::open(const PassOptions& reading) const {
  PassOptions full_reading = reading;
  if (options_.whole_batch) full_reading.layouts = {};
  return std::make_shared<MapElements>(*this, reading, before().open(full_reading));
}

}  // namespace

PipelineStagePtr map_stage(PipelineStagePtr before, DataPipeline::SeededFunction function,
                           bool seeded, const MapOptions& options) {
  return std::make_shared<MapStage>(std::move(before), std::move(function), seeded, options);
}

}  // namespace tessera::detail
