#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::detail {

/// Facts that must be equal on all processes of a run, by name, for check_same_on_all_ranks().
using RunFingerprint = std::vector<std::pair<std::string, std::string>>;

/// Returns the fingerprint of any run: mesh, layouts, layers, weights, compile options, seed,
/// dtypes, workers, callbacks.
RunFingerprint run_fingerprint(const Layer& model, const CompileOptions& options,
                               const LayoutMap& layouts,
                               const std::vector<CallbackHandle>& callbacks);

/// Adds the data and options of evaluate or predict.
void add_batches(RunFingerprint& facts, const DatasetHandle& data, int64_t batch_size,
                 const std::optional<int64_t>& steps);

/// Adds the data and the other options of fit.
void add_fit(RunFingerprint& facts, const FitData& data, const FitOptions& options);

}  // namespace tessera::detail
