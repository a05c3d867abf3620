#pragma once

#include <memory>
#include <string>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::detail {

/// Returns rows [begin, end) of a dataset.
DatasetHandle row_range(const std::shared_ptr<const Dataset>& data, int64_t begin, int64_t end);

/// Returns the data with a weight for every row. Throws ConfigError naming the caller for a stream
/// or a wrong number of weights; reading throws it for data that have weights.
DatasetHandle with_sample_weight(const DatasetHandle& data, const at::Tensor& sample_weight,
                                 const std::string& caller);

/// Returns the data; a stream whose next reader goes on where the last one stopped, if that is
/// where it begins, instead of starting the stream again. One reader at a time.
DatasetHandle continued(const DatasetHandle& data);

/// Returns the data, each label with the weight of its class: (rows), or (rows, steps) if there are
/// several. `labels_are_ids`: whether labels (rows, steps) are class ids; they are one-hot
/// otherwise. Reading throws ConfigError for data that have weights or several outputs.
DatasetHandle with_class_weight(const DatasetHandle& data, const ClassWeight& class_weight,
                                bool labels_are_ids);

}  // namespace tessera::detail
