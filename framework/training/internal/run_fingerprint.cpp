#include <tessera/framework/training/internal/run_fingerprint.hpp>

#include <span>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/nn/dtype_policy_map.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {
namespace {

std::string digest(const std::string& text) {
  return xxh128(std::as_bytes(std::span(text))).substr(0, 12);
}

/// Returns a short text as it is, a longer one as its beginning and digest.
std::string brief(const std::string& text) {
  constexpr size_t max_size = 120;
  return text.size() <= max_size ? text : text.substr(0, max_size) + "… #" + digest(text);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const std::optional<int64_t>& number) { return number ? str(*number) : "none"; }

std::string text_of(BlockPolicy policy) {
  switch (policy) {
    case BlockPolicy::per_device:
      return "per_device";
    case BlockPolicy::per_shard:
      return "per_shard";
    case BlockPolicy::per_worker:
      return "per_worker";
  }
  return "";
}

void add_model(RunFingerprint& facts, const Layer& model) {
  const std::string config = model.config().dump();
  facts.emplace_back("model", str(model.class_name(), " of ", model.sublayers().size(), " layers #",
                                  digest(config)));
  int64_t number = 0;
  for (const auto& layer : model.sublayers()) {
    facts.emplace_back(str("layer ", ++number),
                       brief(str(layer->class_name(), " ", layer->config().dump())));
  }
  std::string weights;
  int64_t count = 0;
  for (const Variable& weight : model.weights()) {
    weights += str(weight.path(), to_string(weight.shape()), dtype_name(weight.dtype()), "\n");
    ++count;
  }
  facts.emplace_back("weights", count == 0 ? "not made yet" : str(count, " #", digest(weights)));
}

void add_optimizer(RunFingerprint& facts, const OptimizerHandle& optimizer) {
  facts.emplace_back("optimizer", optimizer ? optimizer->class_name() : "none");
  if (!optimizer) return;
  const Json config = optimizer->config();
  for (const auto& [key, value] : config.items()) {
    facts.emplace_back("optimizer's " + key, brief(value.dump()));
  }
  facts.emplace_back("optimizer's steps", str(optimizer->steps()));
}

void add_data(RunFingerprint& facts, const std::string& name, const DatasetHandle& data) {
  facts.emplace_back(name, data ? data.name() : "none");
  if (!data) return;
  const auto& stream = data.stream();
  facts.emplace_back(name + "'s size",
                     stream ? "steps: " + text_of(stream->steps()) : str(data->size(), " rows"));
}

}  // namespace

RunFingerprint run_fingerprint(const Layer& model, const CompileOptions& options,
                               const LayoutMap& layouts,
                               const std::vector<CallbackHandle>& callbacks) {
  RunFingerprint facts = {{"mesh", layouts.mesh().describe()}};
  int64_t number = 0;
  for (const std::string& rule : lines_of(layouts.describe())) {
    facts.emplace_back(str("layout rule ", ++number), brief(rule));
  }
  add_model(facts, model);
  add_optimizer(facts, options.optimizer);
  const auto loss = [](const LossChoice& choice) { return choice.text(); };
  const auto weight = [](double value) { return str(value); };
  facts.emplace_back("loss", brief(options.loss.text(loss)));
  facts.emplace_back("loss_weights", brief(options.loss_weights.text(weight)));
  facts.emplace_back("metrics", brief(options.metrics.text()));
  facts.emplace_back("weighted_metrics", brief(options.weighted_metrics.text()));
  facts.emplace_back("bucket_cap_mb", str(options.bucket_cap_mb));
  facts.emplace_back("world_size_invariant", layouts.world_size_invariant() ? "yes" : "no");
  facts.emplace_back("reduce_dtype", dtype_name(reduction_dtype(at::kHalf, Reduce::sum)));
  facts.emplace_back("seed", str(global_seed()));
  const auto& policies = dtype_policy_map();
  facts.emplace_back("dtype policy",
                     policies ? policies->to_string() : to_string(default_dtype_policy()));
  facts.emplace_back("worker threads", str(worker_count()));
  facts.emplace_back("block policy", text_of(block_policy()));
  std::string names;
  for (const CallbackHandle& callback : callbacks) {
    names += (names.empty() ? "" : ", ") + callback->class_name();
  }
  facts.emplace_back("callbacks", names.empty() ? "none" : names);
  return facts;
}

void add_batches(RunFingerprint& facts, const DatasetHandle& data, int64_t batch_size,
                 const std::optional<int64_t>& steps) {
  add_data(facts, "data", data);
  facts.emplace_back("batch_size", str(batch_size));
  facts.emplace_back("steps", text_of(steps));
}

void add_fit(RunFingerprint& facts, const FitData& data, const FitOptions& options) {
  add_data(facts, "data", data.train);
  add_data(facts, "validation data", data.validation);
  facts.emplace_back("batch_size", str(options.batch_size));
  facts.emplace_back("epochs", str(options.epochs));
  facts.emplace_back("initial_epoch", str(options.initial_epoch));
  facts.emplace_back("steps_per_epoch", text_of(options.steps_per_epoch));
  facts.emplace_back("shuffle", options.shuffle ? "yes" : "no");
  facts.emplace_back("sample_weight", options.sample_weight.defined() ? "yes" : "no");
  facts.emplace_back("class_weight", brief(Json(options.class_weight).dump()));
  facts.emplace_back("validation_batch_size", text_of(options.validation_batch_size));
  facts.emplace_back("validation_steps", text_of(options.validation_steps));
  facts.emplace_back("validation_freq", str(options.validation_freq.every()));
  facts.emplace_back("elastic.snapshot_every", str(options.elastic.snapshot_every));
  facts.emplace_back("elastic.min_processes", str(options.elastic.min_processes));
}

}  // namespace tessera::detail
