#pragma once

#include <optional>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera::detail {

/// Throws ConfigError naming the caller if there are no data or no rows.
void check_data(const std::string& caller, const DatasetHandle& data);

/// Throws ConfigError naming the argument, the caller and what was received.
void check_positive(const std::string& caller, const std::string& argument, int64_t value);
void check_positive(const std::string& caller, const std::string& argument,
                    const std::optional<int64_t>& value);

/// Throws ConfigError naming the option if a stream without end is read without a number of steps.
void check_has_end(const std::string& caller, const DatasetHandle& data, const std::string& option,
                   const std::optional<int64_t>& steps);

/// All of these, for the options of evaluate or predict.
template <class Options>
void check_passes(const std::string& caller, const DatasetHandle& data, const Options& options) {
  check_data(caller, data);
  check_positive(caller, "batch_size", options.batch_size);
  check_positive(caller, "steps", options.steps);
  check_has_end(caller, data, "steps", options.steps);
}

/// What fit works on.
struct FitData {
  DatasetHandle train;
  DatasetHandle validation;  ///< none: no validation
};

/// The data of fit with its options checked and applied: split, weighted. Throws ConfigError naming
/// the option.
FitData fit_data(const DatasetHandle& data, const FitOptions& options);

/// How fit reads the batches of an epoch from `position` on, and those of its validation.
BatchLoaderOptions training_batches(const FitOptions& options, const FitPosition& position = {},
                                    const LayoutMap& layouts = {});
BatchLoaderOptions validation_batches(const FitOptions& options, const LayoutMap& layouts = {});

/// The shapes of a model's inputs on batches of these data, with -1 for the number of rows.
Shapes batch_shapes(const DatasetHandle& data);

}  // namespace tessera::detail
