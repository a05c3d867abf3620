#include <tessera/framework/serving/internal/model_worker.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/io/internal/export_files.hpp>
#include <tessera/framework/io/internal/export_memory.hpp>
#include <tessera/framework/serving/internal/request_check.hpp>
#include <tessera/framework/serving/internal/request_pictures.hpp>

namespace tessera::detail {
namespace {

/// Maximum number of row shapes whose memory is remembered.
constexpr size_t max_shapes = 1024;

/// The rows of several requests in one tensor.
at::Tensor joined(const std::vector<const PredictInput*>& parts) {
  Shape shape = parts[0]->shape;
  shape[0] = 0;
  for (const PredictInput* part : parts) shape[0] += part->shape[0];
  at::Tensor rows = at::empty(shape, at::kFloat);
  auto* next = rows.mutable_data_ptr<float>();
  for (const PredictInput* part : parts) {
    next = std::copy(part->values.begin(), part->values.end(), next);
  }
  return rows;
}

}  // namespace

ModelWorker::ModelWorker(const std::string& folder, ModelWorkerOptions options)
    : options_(std::move(options)),
      max_bytes_(max_activation_bytes(options_.max_activation_bytes, options_.layouts)),
      loader_(folder, loader_options()),
      thread_([this] { run(); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return served_ || failure_; });
  if (!failure_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failure_);
}

VersionLoaderOptions ModelWorker::loader_options() const {
  return {.layouts = options_.layouts,
          .max_bytes = max_bytes_,
          .isolate_trials = options_.isolate_trials,
          .trial_timeout = options_.trial_timeout,
          .warn = [this](const std::string& text) { warn(text); },
          .stopped =
              [this] {
                const std::lock_guard lock(mutex_);
                return stopping_;
              }};
}

ModelWorker::~ModelWorker() {
  std::deque<Job> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(waiting_);
  }
  changed_.notify_all();
  stopped_.notify_all();
  for (const Job& job : left)
    job.respond(error_response(503, "[request] the server is shutting down."));
  thread_.join();
}

void ModelWorker::submit(PredictRequest&& request, std::optional<int64_t> version,
                         HttpRespond respond, std::stop_token abandoned) {
  std::vector<Job> dropped;
  std::unique_lock lock(mutex_);
  if (std::ssize(waiting_) >= options_.max_waiting) dropped = take_abandoned();
  if (std::ssize(waiting_) < options_.max_waiting) {
    waiting_.push_back({std::move(request), version, std::move(respond), std::move(abandoned)});
    lock.unlock();
    changed_.notify_all();
  } else {
    lock.unlock();
    respond(error_response(503, str("[request] at most ", options_.max_waiting,
                                    " requests wait. To fix: try again.")));
  }
  for (const Job& job : dropped) job.respond(abandoned_response());
}

void ModelWorker::hurry() {
  const std::lock_guard lock(mutex_);
  options_.batch_window = {};
  changed_.notify_all();
}

std::shared_ptr<const ServedModel> ModelWorker::served() const {
  const std::lock_guard lock(mutex_);
  return served_;
}

WorkerRecords ModelWorker::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

void ModelWorker::run() {
  const c10::InferenceMode inference;
  try {
    switch_to(loader_.first());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
    return;
  }
  changed_.notify_all();
  std::jthread loader;
  try {
    loader = std::jthread([this] { watch(); });
  } catch (...) {
    // The version goes on answering; the warning says that no other one is looked for.
    std::vector<Job> none;
    answer_with_error(none);
  }
  while (true) {
    std::vector<Job> jobs;
    try {
      take_batch(jobs);
      if (!jobs.empty()) answer(jobs);
      take_next();
    } catch (...) {
      answer_with_error(jobs);
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

/// Answers the requests that have no answer yet with the current exception, so that no client waits
/// and the thread continues. Called in a catch clause.
void ModelWorker::answer_with_error(std::vector<Job>& jobs) noexcept {
  try {
    std::string text = "an unknown exception";
    try {
      throw;
    } catch (const std::exception& error) {
      text = error.what();
    } catch (...) {
    }
    text = text.substr(0, text.find('\n'));
    for (Job& job : jobs) {
      if (job.respond) respond(job, error_response(500, text));
    }
    warn(text);
  } catch (...) {
    // Without memory for a line, the request's own timeout ends it.
  }
}

void ModelWorker::respond(Job& job, const HttpResponse& response) {
  const HttpRespond respond = std::exchange(job.respond, nullptr);
  respond(response);
}

void ModelWorker::watch() {
  const c10::InferenceMode inference;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stopped_.wait_for(lock, options_.poll, [this] { return stopping_; })) return;
    }
    try {
      if (std::optional<ExportedModel> next = loader_.next()) {
        const std::lock_guard lock(mutex_);
        next_ = std::move(next);
        changed_.notify_all();
      }
    } catch (...) {
      std::vector<Job> none;
      answer_with_error(none);
    }
  }
}

void ModelWorker::take_next() {
  std::optional<ExportedModel> next;
  {
    const std::lock_guard lock(mutex_);
    next.swap(next_);
  }
  if (next) switch_to(std::move(*next));
}

std::vector<ModelWorker::Job> ModelWorker::take_abandoned() {
  const auto begin = std::stable_partition(waiting_.begin(), waiting_.end(), [](const Job& job) {
    return !job.abandoned.stop_requested();
  });
  std::vector<Job> jobs(std::make_move_iterator(begin), std::make_move_iterator(waiting_.end()));
  waiting_.erase(begin, waiting_.end());
  return jobs;
}

int64_t ModelWorker::rows_waiting() const {
  int64_t rows = 0;
  for (const Job& job : waiting_) rows += job.request.instances();
  return rows;
}

void ModelWorker::take_batch(std::vector<Job>& jobs) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || next_ || !waiting_.empty(); });
  if (waiting_.empty()) return;
  changed_.wait_for(lock, options_.batch_window, [this] {
    const bool hurried = stopping_ || options_.batch_window.count() == 0;
    return hurried || rows_waiting() >= options_.max_batch;
  });
  take_compatible(jobs);
}

void ModelWorker::take_compatible(std::vector<Job>& jobs) {
  size_t fitting = 0, taken = 0;
  for (int64_t rows = 0; fitting < waiting_.size(); ++fitting) {
    const PredictRequest& next = waiting_[fitting].request;
    rows += next.instances();
    const bool fits =
        fitting == 0 || (rows <= options_.max_batch && share_batch(waiting_[0].request, next));
    if (!fits) break;
    if (std::has_single_bit(static_cast<uint64_t>(rows))) taken = fitting + 1;
  }
  const auto end = waiting_.begin() + static_cast<int64_t>(taken == 0 ? fitting : taken);
  jobs.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
}

std::optional<HttpResponse> ModelWorker::check_request(Job& job) const {
  if (job.abandoned.stop_requested()) return abandoned_response();
  if (job.version && *job.version != model_->version) {
    return error_response(404, str("[request] version ", model_->version,
                                   " is served. Received: version ", *job.version, "."));
  }
  if (auto refusal = decode_pictures(job.request, *model_)) return refusal;
  return wrong_request(job.request, *model_, served_->signature);
}

void ModelWorker::answer(std::vector<Job>& jobs) {
  const auto refused = [this](Job& job) {
    const std::optional<HttpResponse> refusal = check_request(job);
    if (refusal) respond(job, *refusal);
    return refusal.has_value();
  };
  std::erase_if(jobs, refused);
  if (jobs.empty()) return;
  if (jobs.size() > 1) {
    try {
      predict(jobs);
    } catch (...) {
      // None is answered yet.
    }
  }
  answer_alone(jobs);
}

/// Predicts each request that has no answer yet on its own, so that only the faulty ones fail.
void ModelWorker::answer_alone(std::vector<Job>& jobs) {
  for (Job& job : jobs) {
    if (!job.respond) continue;
    if (job.abandoned.stop_requested()) {
      respond(job, abandoned_response());
      continue;
    }
    try {
      predict(std::span(&job, 1));
    } catch (const RequestError& error) {
      respond(job, error_response(error.status(), error.what()));
    } catch (const StateError& error) {
      // The model is at fault, not the request.
      respond(job, error_response(500, error.what()));
      if (std::exchange(faulty_version_, model_->version) != model_->version) {
        warn(str("version ", model_->version, " cannot answer: ", error.what()));
      }
    } catch (const Error& error) {
      respond(job, error_response(400, error.what()));
    } catch (const std::exception& error) {
      const std::string text = error.what();
      respond(job, error_response(500, text.substr(0, text.find('\n'))));
    }
  }
}

/// Predicts texts. Limits the padded batch, since the longest text may set the width of all rows.
std::vector<at::Tensor> ModelWorker::outputs_of_texts(std::span<const Job> jobs) {
  std::vector<std::string_view> texts;
  for (const Job& job : jobs) {
    texts.insert(texts.end(), job.request.texts.begin(), job.request.texts.end());
  }
  const Shape shape = model_->text->batch_shape(texts);
  if (numel(shape) <= options_.max_elements) {
    check_memory({shape});
    return model_->predict_all(texts);
  }
  throw RequestError(413, "request",
                     str("a batch of texts becomes at most ", options_.max_elements, " numbers"),
                     to_string(shape), "send shorter texts, or fewer at a time");
}

std::vector<at::Tensor> ModelWorker::outputs_of_rows(std::span<const Job> jobs) {
  std::vector<at::Tensor> inputs;
  Shapes shapes;
  for (size_t i = 0; i < model_->inputs.size(); ++i) {
    std::vector<const PredictInput*> parts;
    for (const Job& job : jobs) parts.push_back(&job.request.input(i));
    inputs.push_back(joined(parts));
    shapes.push_back(inputs.back().sizes().vec());
  }
  check_memory(shapes);
  return model_->predict_all(inputs);
}

/// Throws RequestError if a call on these inputs would exceed the memory limit. Checks a full batch
/// first: if it fits, which is usual, row shapes are checked only once.
void ModelWorker::check_memory(const Shapes& inputs) {
  if (std::isinf(max_bytes_)) return;
  // The extents of all rows, each after a separator.
  Shape row;
  for (const Shape& input : inputs) {
    row.push_back(-1);
    row.insert(row.end(), input.begin() + 1, input.end());
  }
  const int64_t count = inputs[0][0];
  const auto known = affordable_.find(row);
  if (known != affordable_.end() && count <= known->second) return;
  Shapes rows = inputs;
  ActivationPeak peak;
  for (const int64_t batch : {std::min(options_.max_batch, export_batch_rows), count}) {
    for (Shape& shape : rows) shape[0] = std::max(batch, count);
    peak = predict_peak(*model_, rows, max_bytes_);
    if (peak.bytes > max_bytes_) continue;
    // Clients choose row shapes if the model has unknown extents: bound the table.
    if (affordable_.size() >= max_shapes) affordable_.clear();
    affordable_[row] = std::max(batch, count);
    return;
  }
  throw RequestError(413, "request",
                     str("a call of the model needs at most ", readable_bytes(max_bytes_),
                         " of activation memory"),
                     peak_text(peak), "send fewer instances at a time, or smaller ones");
}

std::vector<at::Tensor> ModelWorker::call_model(std::span<const Job> jobs) {
  const StepRecords& steps = model_->model.predict_step_records();
  const int64_t before = steps.replayed;
  std::vector<at::Tensor> outputs = model_->text ? outputs_of_texts(jobs) : outputs_of_rows(jobs);
  for (at::Tensor& output : outputs) output = output.to(at::kFloat).contiguous();
  const std::lock_guard lock(mutex_);
  ++records_.calls;
  if (steps.replayed > before) ++records_.replayed;
  return outputs;
}

void ModelWorker::predict(std::span<Job> jobs) {
  const std::vector<at::Tensor> outputs = call_model(jobs);
  std::vector<std::string> labels;
  for (const auto& [label, probability] : model_->decide(outputs[0])) labels.push_back(label);
  std::vector<PredictOutput> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    parts.push_back({model_->outputs[i].name, {}, outputs[i].sizes().vec()});
  }
  std::span<const std::string> names(labels);
  int64_t first = 0;
  // Format all answers before sending the first, so that after a failure none has been sent.
  std::vector<std::pair<Job*, std::string>> replies;
  for (Job& job : jobs) {
    const int64_t rows = job.request.instances();
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t width = outputs[i].numel() / outputs[i].size(0);
      parts[i].shape[0] = rows;
      parts[i].values = {outputs[i].const_data_ptr<float>() + first * width,
                         static_cast<size_t>(rows * width)};
    }
    const size_t labelled = names.empty() ? 0 : static_cast<size_t>(rows);
    if (are_finite(parts)) {
      replies.emplace_back(&job, predict_reply(parts, names.first(labelled), job.request.columnar));
    } else if (jobs.size() == 1) {
      fail_non_finite(*model_);
    }
    names = names.subspan(labelled);
    first += rows;
  }
  {
    const std::lock_guard lock(mutex_);
    records_.answered += std::ssize(replies);
  }
  for (auto& [job, reply] : replies) respond(*job, {.body = std::move(reply)});
}

void ModelWorker::switch_to(ExportedModel&& model) {
  model_ = std::move(model);
  affordable_.clear();
  ServedModel served{.version = model_->version,
                     .takes_text = model_->text != nullptr,
                     .inputs = model_->inputs,
                     .outputs = model_->outputs,
                     .input_names = names_of_tensors(model_->inputs),
                     .labels = model_->labels};
  served.signature = std::hash<std::string>{}(join(served.input_names, "\n"));
  const std::lock_guard lock(mutex_);
  served_ = std::make_shared<const ServedModel>(std::move(served));
}

void ModelWorker::warn(const std::string& text) const {
  const std::string line = "warning: " + one_line(text, 1000);
  if (options_.warn) return options_.warn(line);
  std::cerr << line << std::endl;
}

}  // namespace tessera::detail
