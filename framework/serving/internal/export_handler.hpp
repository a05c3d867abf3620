#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/serving/http/predict_request.hpp>
#include <tessera/framework/serving/internal/model_worker.hpp>
#include <tessera/framework/serving/model_handler.hpp>

namespace tessera::detail {

/// Serves the newest version of an export, and describes it in TensorFlow Serving's format.
class ExportHandler final : public ModelHandler {
 public:
  /// Loads the newest version that can be loaded. Throws FileError if there is none.
  ExportHandler(const std::string& folder, std::string name, const ModelWorkerOptions& options);

  void predict(HttpRequest&& request, std::optional<int64_t> version, HttpRespond respond) override;
  HttpResponse describe(const ModelRoute& route, const HttpRequest& request) const override;
  void drain() override { worker_.hurry(); }
  std::shared_ptr<const ServedModel> served() const override { return worker_.served(); }
  WorkerRecords records() const override { return worker_.records(); }

 private:
  std::string name_;
  PredictLimits limits_;
  ModelWorker worker_;
};

}  // namespace tessera::detail
