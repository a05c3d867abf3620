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

namespace tessera::detail {

struct ModelWorkerOptions {
  int64_t max_batch = 256;  ///< rows of one call of the model
  /// Numbers that the texts of one call may become; status 413 for texts that become more.
  int64_t max_cells = 1 << 20;
  /// Bytes that the values of one call may hold at one time; status 413 for a request that needs
  /// more, and a version whose sample does is refused. Absent: half of what is available at the
  /// start.
  std::optional<int64_t> max_activation_bytes = std::nullopt;
  std::chrono::microseconds batch_window{0};  ///< how long a request waits for others
  std::chrono::milliseconds poll{1000};       ///< between two looks for a newer version
  int64_t max_waiting = 1024;                 ///< requests; more are answered with status 503
  LayoutMap layouts = {};                     ///< undefined: whole on one device
  /// Whether a newer version is first tried in a process of its own, tessera-check-export, which is
  /// the one that fails if the version takes more memory or time than there is.
  bool try_apart = true;
  std::chrono::milliseconds trial_timeout{600000};  ///< for that process
  /// Takes a line about an export that is refused; the standard error if absent.
  std::function<void(const std::string&)> warn = {};
};

/// What is served at the moment.
struct ServedModel {
  int64_t version = 0;
  bool takes_text = false;
  Shape input_shape;  ///< rows unknown: -1
  Shape output_shape;
  at::ScalarType input_dtype = at::kFloat;
  std::vector<std::string> labels;
};

/// A thread that owns a model: answers requests, several in one call of the model where they wait
/// together, and takes over the newest version of its export that can be loaded; it is loaded on
/// another thread meanwhile, and tried in another process before. The answers to one request come
/// from one version. A version that is damaged is refused with one warning, and looked at again
/// when its files change.
class ModelWorker {
 public:
  /// Loads the newest version that can be loaded. Throws FileError if there is none.
  ModelWorker(const std::string& folder, ModelWorkerOptions options);
  /// Ends after the batch under way; what waits is answered with status 503.
  ~ModelWorker();
  ModelWorker(const ModelWorker&) = delete;
  ModelWorker& operator=(const ModelWorker&) = delete;

  /// Answers a request of at most max_batch instances, from `version` or the one that is served.
  /// From any thread.
  void submit(PredictRequest&& request, std::optional<int64_t> version, HttpRespond respond);
  /// Makes the batch window 0, for the requests that wait too. From any thread.
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
  void take_alike(std::vector<Job>& jobs);
  int64_t rows_waiting() const;
  void answer(std::vector<Job>& jobs);
  void answer_alone(std::vector<Job>& jobs);
  void predict(std::span<Job> jobs);
  at::Tensor outputs_of(const std::vector<std::string_view>& texts);
  void check_memory(const Shape& input);
  void check_weights() const;
  void give_up(std::vector<Job>& jobs) noexcept;
  /// Answers a request, once.
  static void respond(Job& job, const HttpResponse& response);
  std::optional<HttpResponse> misfit(const Job& job) const;
  void take_next();
  void take_over(ExportedModel&& model);
  void warn(const std::string& text) const;

  ModelWorkerOptions options_;
  double most_bytes_;  ///< that the values of a call may hold
  // Of the thread alone.
  std::optional<ExportedModel> model_;
  int64_t faulty_version_ = -1;          ///< of which was warned that it cannot answer
  std::map<Shape, int64_t> affordable_;  ///< by the shape of a row, rows there is memory for
  VersionLoader loader_;  ///< of the thread that loads, which is the same until there is a model

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::optional<ExportedModel> next_;  ///< to be taken over
  std::shared_ptr<const ServedModel> served_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tessera::detail
