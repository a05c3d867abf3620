#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>
#include <tessera/framework/serving/internal/version_loader.hpp>
#include <tessera/framework/serving/model_worker_options.hpp>

namespace tessera::detail {

/// A thread that owns a model and answers requests; those that wait together share one call of the
/// model, if possible of a number of rows that is a power of two: a model has a captured step for
/// each number of rows, and at most 16. It switches to the newest version of its export that can be
/// loaded: another process tries a version, another thread loads it. All answers to one request
/// come from one version. A damaged version is refused with one warning, and tried again when its
/// files change.
class ModelWorker {
 public:
  /// Loads the newest version that can be loaded. Throws FileError if there is none.
  ModelWorker(const std::string& folder, ModelWorkerOptions options);
  /// Ends after the current batch; waiting requests are answered with status 503.
  ~ModelWorker();
  ModelWorker(const ModelWorker&) = delete;
  ModelWorker& operator=(const ModelWorker&) = delete;

  /// Queues a request of at most max_batch instances. If `version` is not the one in service, the
  /// answer is status 404. A request whose token stops before its batch begins is not computed.
  /// Thread-safe.
  void submit(PredictRequest&& request, std::optional<int64_t> version, HttpRespond respond,
              std::stop_token abandoned = {});
  /// Sets the batch window to 0, for requests that already wait too. Thread-safe.
  void hurry();

  std::shared_ptr<const ServedModel> served() const;
  /// Thread-safe.
  WorkerRecords records() const;

 private:
  struct Job {
    PredictRequest request;
    std::optional<int64_t> version;
    HttpRespond respond;
    std::stop_token abandoned;
  };

  VersionLoaderOptions loader_options() const;
  void run();
  void watch();
  void take_batch(std::vector<Job>& jobs);
  void take_compatible(std::vector<Job>& jobs);
  int64_t rows_waiting() const;
  /// Removes the waiting requests that were abandoned. Called under the lock.
  std::vector<Job> take_abandoned();
  void answer(std::vector<Job>& jobs);
  void answer_alone(std::vector<Job>& jobs);
  /// Answers requests by one call of the model. Those whose predictions are not finite stay without
  /// an answer if there are several, since others may be the reason.
  void predict(std::span<Job> jobs);
  std::vector<at::Tensor> call_model(std::span<const Job> jobs);
  std::vector<at::Tensor> outputs_of_texts(std::span<const Job> jobs);
  std::vector<at::Tensor> outputs_of_rows(std::span<const Job> jobs);
  void check_memory(const Shapes& inputs);
  void answer_with_error(std::vector<Job>& jobs) noexcept;
  /// Sends the answer to a request and clears its callback.
  static void respond(Job& job, const HttpResponse& response);
  /// Decodes a request's pictures. Returns the error response to a request that does not fit.
  std::optional<HttpResponse> check_request(Job& job) const;
  void take_next();
  void switch_to(ExportedModel&& model);
  void warn(const std::string& text) const;

  ModelWorkerOptions options_;
  double max_bytes_;  ///< maximum activation memory of a call
  // Accessed by the model's thread only.
  std::optional<ExportedModel> model_;
  int64_t faulty_version_ = -1;          ///< last version warned about, because it cannot answer
  std::map<Shape, int64_t> affordable_;  ///< by row shapes: the number of rows there is memory for
  VersionLoader loader_;  ///< accessed by the loading thread only, once there is a model

  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< for the model's thread
  std::condition_variable stopped_;  ///< for the loading thread
  std::deque<Job> waiting_;
  std::optional<ExportedModel> next_;  ///< the loaded version to switch to
  std::shared_ptr<const ServedModel> served_;
  std::exception_ptr failure_;
  WorkerRecords records_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tessera::detail
