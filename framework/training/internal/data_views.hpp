#pragma once

#include <memory>
#include <string>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::detail {

/// Rows [begin, end) of a dataset.
DatasetHandle row_range(const std::shared_ptr<const Dataset>& data, int64_t begin, int64_t end);

/// The data with a weight for every row. Throws ConfigError naming the caller for a stream, data
/// that have weights, or another number of them.
DatasetHandle with_sample_weight(const DatasetHandle& data, const at::Tensor& sample_weight,
                                 const std::string& caller);

/// The data, each row with the weight of its class. Reading throws ConfigError for data that have
/// weights or several outputs.
DatasetHandle with_class_weight(const DatasetHandle& data, const ClassWeight& class_weight);

}  // namespace tessera::detail
