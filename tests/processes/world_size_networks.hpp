#pragma once

#include <string>

#include <tessera/tessera.hpp>

namespace tessera::test {

/// Numbers of rows.
struct WorldSizeRows {
  int64_t training = 0, validation = 0;
};

/// A small network whose training is compared between numbers of processes, and its data. Layers
/// with random numbers have names, so that these do not depend on what a process has made before.
struct WorldSizeNetwork {
  ModelHandle model;
  DatasetHandle data, validation;
};

/// Makes a network by name:
///
///     mlp    two dense layers with dropout
///     cnn    a convolution with batch normalization, and pooling
///     imdb   the DTensor tutorial's classifier of tf-idf weights, with batch normalization
///     text   an embedding of the words of texts, a convolution over them, dropout
///     gpt    a transformer block with dropout; `experts` replaces its dense layers
///     parts  mlp behind a kernel that sums in as many parts as ATen has threads for it
///     fixed  the same with as many parts as the process has threads
WorldSizeNetwork world_size_network(const std::string& name, bool experts, WorldSizeRows rows);

/// Returns layouts of a network by name: "data", "fsdp" and "zero2" over mesh dimension batch,
/// "hsdp" over replica and batch, "tensor" over batch and model, for mlp, cnn and text, "spatial"
/// over batch and height, for cnn; "gpt/fsdp" is the file apps/gpt/layouts/fsdp.json.
LayoutMap world_size_layouts(const std::string& name, const Mesh& mesh,
                             const WorldSizeNetwork& network);

/// Hashes weights, slots, losses and metrics, each in full. Collective.
std::string digest_in_full(const ModelHandle& model, const History& history);

}  // namespace tessera::test
