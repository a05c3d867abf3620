#pragma once

#include <functional>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::detail {

/// Joins the register of an elastic run, unless this process has, and returns the cluster of its
/// generation.
using ElasticCluster = std::function<Cluster(const ClusterFlags& flags)>;

/// The function that find_cluster() calls where TESSERA_MEMBERS names a register; framework/comm,
/// which keeps the membership, sets it. Null in programs without that room.
ElasticCluster& elastic_cluster();

}  // namespace tessera::detail
