#pragma once

#include <optional>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera::detail {

/// Throws ConfigError naming the caller if there is no dataset or it has no rows.
void check_data(const std::string& caller, const DatasetHandle& data);

/// Throws ConfigError naming the argument and the caller unless `value` is at least 1 (or absent).
void check_positive(const std::string& caller, const std::string& argument, int64_t value);
void check_positive(const std::string& caller, const std::string& argument,
                    const std::optional<int64_t>& value);

/// Throws ConfigError naming the option if an endless stream is read without a number of steps.
void check_has_end(const std::string& caller, const DatasetHandle& data, const std::string& option,
                   const std::optional<int64_t>& steps);

/// Runs all of these checks on the options of evaluate or predict.
template <class Options>
void check_passes(const std::string& caller, const DatasetHandle& data, const Options& options) {
  check_data(caller, data);
  check_positive(caller, "batch_size", options.batch_size);
  check_positive(caller, "steps", options.steps);
  check_has_end(caller, data, "steps", options.steps);
}

/// The datasets of a fit.
struct FitData {
  DatasetHandle train;
  DatasetHandle validation;  ///< empty: no validation
};

/// Checks the options of fit and applies them to its data: split, weights. The loss that is
/// compiled for the outputs of these names decides whether labels are class ids. Throws ConfigError
/// naming the option.
FitData fit_data(const DatasetHandle& data, const FitOptions& options,
                 const CompileOptions& compiled, const std::vector<std::string>& outputs);

/// Returns how fit reads the batches of an epoch from `position` on, or those of its validation.
/// Numbers of the training batches are those of the pass over the data.
BatchLoaderOptions training_batches(const FitOptions& options, const FitPosition& position = {},
                                    const LayoutMap& layouts = {});
BatchLoaderOptions validation_batches(const FitOptions& options, const LayoutMap& layouts = {});

/// Returns the batch of the pass over the data that the first step of the position's epoch reads.
int64_t first_batch(const FitPosition& position);

/// Returns the number of passes over the data that are begun at `position`.
int64_t passes_begun(const FitPosition& position);

/// Returns the position of the epoch after the one that ends at `position`. With steps_per_epoch it
/// goes on in the same pass of `batches_in_pass` batches, unless the data have ended.
FitPosition next_epoch(const FitPosition& position, const FitOptions& options,
                       const std::optional<int64_t>& batches_in_pass);

/// Returns the steps of an epoch that callbacks are told: those that the user asked for, else those
/// of the data, if known.
std::optional<int64_t> told_steps(const DatasetHandle& data, const BatchLoaderOptions& options);

/// Returns the shapes of a model's inputs for batches of these data, with -1 for the number of
/// rows.
Shapes batch_shapes(const DatasetHandle& data);

}  // namespace tessera::detail
