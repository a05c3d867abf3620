#pragma once

#include <memory>

#include <tessera/framework/strategy/distributed_dataset.hpp>

namespace tessera::detail {

/// Returns the global batches of an epoch: each joins one batch of `data` per replica of this
/// process with those of the other processes. Collective.
std::shared_ptr<strategy::DistributedDataset::Batches> function_batches(
    const DatasetHandle& data, const LayoutMap& layouts, const strategy::DistributeOptions& options,
    int64_t epoch);

}  // namespace tessera::detail
