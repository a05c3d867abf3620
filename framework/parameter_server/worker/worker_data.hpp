#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/parameter_server/closure.hpp>

namespace tessera::detail {

/// A per-worker dataset as the program registered it.
struct RegisteredDataset {
  strategy::DatasetFunction function;
  strategy::PerWorkerOptions options;
};

/// The batches that a worker has begun to read, of every dataset the last iteration.
class WorkerData {
 public:
  WorkerData(const strategy::InputContext& context, const LayoutMap& layouts);
  ~WorkerData();

  /// The next batch, cut over the worker's mesh; nothing after the last. Throws StateError for an
  /// iteration that a later one has replaced.
  std::optional<Batch> next(const strategy::PerWorkerDataset& of,
                            const RegisteredDataset& registered);

 private:
  struct Reading;
  strategy::InputContext context_;
  LayoutMap layouts_;
  std::map<std::string, std::unique_ptr<Reading>> reading_;
};

}  // namespace tessera::detail
