#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::bench {

/// The Core-API guide's MLP: inputs, hidden units, classes; and its batch.
inline const std::vector<int64_t> mlp_sizes = {784, 700, 500, 10};
inline constexpr int64_t mlp_batch_size = 128;

/// Random images, and labels that follow from them: eight batches.
TensorDataset mlp_data();

/// The model, compiled as in the guide.
Sequential mlp_model(const LayoutMap& layouts);

/// The DTensor tutorial's words, hidden units and classes; and its batch.
inline const std::vector<int64_t> imdb_sizes = {1200, 48, 2};
inline constexpr int64_t imdb_batch_size = 64;

/// Random rows in place of tf-idf, and labels that follow from them: eight batches.
TensorDataset imdb_data();

/// Mesh and layouts of a scheme of the tutorial: "data", "model" or "spatial", on 8 virtual
/// devices.
LayoutMap imdb_layouts(const std::string& scheme);

/// The tutorial's model, which descends the summed loss of a batch; compiled.
Sequential imdb_model(const LayoutMap& layouts);

/// The Keras tutorial's Flatten-128-10, compiled.
Sequential digits_model();

/// The first 100 batches of MNIST.
MnistDataset cnn_data();

/// Two convolutions with poolings, dropout and logits, compiled: `mnist --model cnn`.
Sequential cnn_model(const LayoutMap& layouts = {});

/// An MLP of 230 MB of weights, compiled; its batches are those of mlp_data().
Sequential large_model(const LayoutMap& layouts);

}  // namespace tessera::bench
