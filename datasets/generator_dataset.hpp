#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>

namespace tessera {

/// The options of GeneratorDataset.
struct GeneratorDatasetOptions {
  /// Batches of a pass, if known; the progress bar then shows it as the total.
  std::optional<int64_t> steps = std::nullopt;
  /// Whether the batches never end; fit() then needs steps_per_epoch.
  bool endless = false;
  std::string name = "generator";  ///< name of the data in errors and histories
};

/// Batches made by a user-defined function, which starts over in every pass over the data: an
/// epoch, or several with steps_per_epoch (tf.data.Dataset.from_generator):
///
///     GeneratorDataset data([] {
///       return [i = 0]() mutable -> std::optional<Examples> {
///         if (i++ == 100) return std::nullopt;
///         return Examples{.x = {at::rand({32, 8})}, .y = {at::rand({32, 1})}};
///       };
///     });
class GeneratorDataset final : public StreamDataset {
 public:
  /// `start` is called once per pass, and once before the first if the inputs' shapes are needed to
  /// build the model. Throws ConfigError if it is empty, or if `steps` is below 1.
  explicit GeneratorDataset(std::function<BatchFunction()> start,
                            GeneratorDatasetOptions options = {});

  BatchFunction start(int64_t) const override { return start_(); }
  std::optional<int64_t> steps() const override { return options_.steps; }
  bool endless() const override { return options_.endless; }
  std::string name() const override { return options_.name; }
  /// Makes the first batch and returns its shapes. Throws ConfigError if there is none.
  std::vector<Shape> input_shapes() const override;

 private:
  std::function<BatchFunction()> start_;
  GeneratorDatasetOptions options_;
};

}  // namespace tessera
