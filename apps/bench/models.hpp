#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::bench {

/// Sizes of the Core-API guide's MLP (inputs, hidden units, classes) and its batch size.
inline const std::vector<int64_t> mlp_sizes = {784, 700, 500, 10};
inline constexpr int64_t mlp_batch_size = 128;

/// Returns eight batches of random images and labels computed from them.
TensorDataset mlp_data();

/// Returns the MLP, compiled as in the guide.
Sequential mlp_model(const LayoutMap& layouts);

/// Sizes of the DTensor tutorial's model (words, hidden units, classes) and its batch size.
inline const std::vector<int64_t> imdb_sizes = {1200, 48, 2};
inline constexpr int64_t imdb_batch_size = 64;

/// Returns eight batches of random rows, instead of tf-idf, and labels computed from them.
TensorDataset imdb_data();

/// Returns mesh and layouts of a scheme of the tutorial, "data", "model" or "spatial", on 8 virtual
/// devices.
LayoutMap imdb_layouts(const std::string& scheme);

/// Returns the tutorial's model, compiled with the summed loss of a batch.
Sequential imdb_model(const LayoutMap& layouts);

/// Returns the Keras tutorial's Flatten-128-10, compiled.
Sequential digits_model();

/// Returns the first 100 batches of MNIST.
MnistDataset cnn_data();

/// Returns the model of `mnist --model cnn`, compiled: two convolutions with pooling, dropout,
/// logits.
Sequential cnn_model(const LayoutMap& layouts = {});

/// Returns an MLP with 230 MB of weights, compiled, for the batches of mlp_data().
Sequential large_model(const LayoutMap& layouts);

}  // namespace tessera::bench
