#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A picture of how a tensor is cut over its mesh, at most 78 columns wide: rows and columns are
/// the axes, each cell one shard in proportion, with the ids of the devices that hold it ("0,2" are
/// replicas, "0 + 1" addends of a pending sum). Of more than two axes it shows those that are cut;
/// where more than two are, or a picture would be too wide, a table of the shards. The numbers
/// along the edges are global indices. Needs no values and never communicates.
/// After jax.debug.visualize_array_sharding.
std::string visualize_layout(const Shape& shape, const Layout& layout);

/// The same, with the tensor's dtype.
std::string visualize_layout(const DTensor& tensor);

}  // namespace tessera
