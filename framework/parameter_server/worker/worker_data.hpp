#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/parameter_server/closure.hpp>

namespace tessera::detail {

/// A per-worker dataset registered by the program.
struct RegisteredDataset {
  strategy::DatasetFunction function;
  strategy::PerWorkerOptions options;
};

/// A worker's readers: for every dataset the one of its latest iteration.
class WorkerData {
 public:
  WorkerData(const strategy::InputContext& context, const LayoutMap& layouts);
  ~WorkerData();

  /// Returns the next batch, sharded over the worker's mesh; nullopt after the last. Throws
  /// StateError for an iteration that a later one has replaced.
  std::optional<Batch> next(const strategy::PerWorkerDataset& of,
                            const RegisteredDataset& registered);

 private:
  struct Reading;
  strategy::InputContext context_;
  LayoutMap layouts_;
  std::map<std::string, std::unique_ptr<Reading>> reading_;
};

}  // namespace tessera::detail
