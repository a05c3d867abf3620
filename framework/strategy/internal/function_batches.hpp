#pragma once

#include <memory>

#include <tessera/framework/strategy/distributed_dataset.hpp>

namespace tessera::detail {

/// The batches of an epoch of data of this process, one for each of its replicas, joined with those
/// of the other processes. Collective.
std::shared_ptr<strategy::DistributedDataset::Batches> function_batches(
    const DatasetHandle& data, const LayoutMap& layouts, const strategy::DistributeOptions& options,
    int64_t epoch);

}  // namespace tessera::detail
