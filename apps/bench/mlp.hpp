#pragma once

#include <cstdint>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::bench {

/// The Core-API guide's MLP: inputs, hidden units, classes; and its batch.
inline const std::vector<int64_t> mlp_sizes = {784, 700, 500, 10};
inline constexpr int64_t mlp_batch_size = 128;
inline constexpr int64_t mlp_batch_count = 8;

/// Random images, and labels that follow from them: mlp_batch_count batches.
TensorDataset mlp_data();

/// Numbers of the rows in the batch of a step, the same again every mlp_batch_count steps.
std::vector<int64_t> mlp_rows(int64_t step);

/// The model, compiled as in the guide.
Sequential mlp_model(const LayoutMap& layouts);

}  // namespace tessera::bench
