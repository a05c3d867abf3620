#pragma once

#include <vector>

#include <tessera/tessera.hpp>

#include "tests/support/keras_layers.hpp"

/// Checks of models against tests/golden/keras_operations.json.
namespace tessera::test {

using namespace detail;

/// A mesh of virtual CPUs with the dimension batch and, for two sizes, model.
Mesh mesh_of(const std::vector<int64_t>& sizes);

/// The sizes of the meshes that models are checked on.
inline const std::vector<std::vector<int64_t>> checked_meshes = {{1}, {2}, {2, 2}};

/// Reads the model as Keras describes it.
ModelHandle read_model(const Json& golden);

/// Checks that the model computes with Keras' weights what Keras does, within 1e-6 of the scale, on
/// several meshes with the batch sharded and, on the last of them, the last axis too.
void check_outputs(const ModelHandle& model, const Json& golden);

}  // namespace tessera::test
