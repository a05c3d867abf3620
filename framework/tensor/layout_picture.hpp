#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// Draws how a tensor is sharded over its mesh, at most 78 columns wide: rows and columns are the
/// axes; each cell is one shard, to scale, with the ids of the devices that hold it ("0,2":
/// replicas; "0 + 1": partial sums). Of more than two axes it shows the sharded ones; if more than
/// two are sharded, or the picture would be too wide, it prints a table of the shards. The numbers
/// along the edges are global indices. Needs no data and never communicates.
/// After jax.debug.visualize_array_sharding.
std::string visualize_layout(const Shape& shape, const Layout& layout);

/// Draws the layout of `tensor`; the title also names its dtype.
std::string visualize_layout(const DTensor& tensor);

}  // namespace tessera
