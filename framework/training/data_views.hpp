#pragma once

#include <memory>
#include <string>

#include <tessera/framework/nn/dataset.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera {

/// Rows [begin, end) of a dataset.
DatasetHandle row_range(const std::shared_ptr<const Dataset>& data, int64_t begin, int64_t end);

/// The data with a weight for every row. Throws ConfigError naming the caller for a stream, data
/// that have weights, or another number of them.
DatasetHandle with_sample_weight(const DatasetHandle& data, const at::Tensor& sample_weight,
                              const std::string& caller);

/// The data, each row with the weight of its class. Reading throws ConfigError for data that have
/// weights or several outputs.
DatasetHandle with_class_weight(const DatasetHandle& data, const ClassWeight& class_weight);

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

}  // namespace tessera
