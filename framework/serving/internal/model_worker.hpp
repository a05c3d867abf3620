#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>
#include <tessera/framework/serving/internal/version_loader.hpp>
#include <tessera/framework/serving/model_worker_options.hpp>

namespace tessera::detail {

/// A thread that owns a model and answers requests; those that wait together share one call of the
/// model. It switches to the newest version of its export that can be loaded: another process
/// tries a version, another thread loads it. All answers to one request come from one version. A
/// damaged version is refused with one warning, and tried again when its files change.
class ModelWorker {
 public:
  /// Loads the newest version that can be loaded. Throws FileError if there is none.
  ModelWorker(const std::string& folder, ModelWorkerOptions options);
  /// Ends after the current batch; waiting requests are answered with status 503.
  ~ModelWorker();
  ModelWorker(const ModelWorker&) = delete;
  ModelWorker& operator=(const ModelWorker&) = delete;

  /// Queues a request of at most max_batch instances. If `version` is not the one in service, the
  /// answer is status 404. Thread-safe.
  void submit(PredictRequest&& request, std::optional<int64_t> version, HttpRespond respond);
  /// Sets the batch window to 0, for requests that already wait too. Thread-safe.
  void hurry();

  std::shared_ptr<const ServedModel> served() const;

 private:
  struct Job {
    PredictRequest request;
    std::optional<int64_t> version;
    HttpRespond respond;
  };

  VersionLoaderOptions loader_options() const;
  void run();
  void watch();
  void take_batch(std::vector<Job>& jobs);
  void take_compatible(std::vector<Job>& jobs);
  int64_t rows_waiting() const;
  void answer(std::vector<Job>& jobs);
  void answer_alone(std::vector<Job>& jobs);
  void predict(std::span<Job> jobs);
  at::Tensor outputs_of(const std::vector<std::string_view>& texts);
  void check_memory(const Shape& input);
  void check_weights() const;
  void answer_with_error(std::vector<Job>& jobs) noexcept;
  /// Sends the answer to a request and clears its callback.
  static void respond(Job& job, const HttpResponse& response);
  std::optional<HttpResponse> check_request(const Job& job) const;
  void take_next();
  void switch_to(ExportedModel&& model);
  void warn(const std::string& text) const;

  ModelWorkerOptions options_;
  double max_bytes_;  ///< maximum activation memory of a call
  // Accessed by the model's thread only.
  std::optional<ExportedModel> model_;
  int64_t faulty_version_ = -1;          ///< last version warned about, because it cannot answer
  std::map<Shape, int64_t> affordable_;  ///< by row shape: the number of rows there is memory for
  VersionLoader loader_;  ///< accessed by the loading thread only, once there is a model

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::optional<ExportedModel> next_;  ///< the loaded version to switch to
  std::shared_ptr<const ServedModel> served_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tessera::detail
