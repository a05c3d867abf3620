// One of several processes that train the small model, with an optional planted fault.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/stored_value.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/support/held_communicator.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/step_memory.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// A value whose first axis is sharded over all devices.
DTensor sharded(const Mesh& mesh, at::ScalarType dtype, int64_t rows) {
  return filled({rows, 8}, 1, dtype, Layout({mesh.dims()[0].first.c_str(), nullptr}, mesh));
}

DTensor addends(const Mesh& mesh, at::ScalarType dtype, int64_t rows) {
  return ops::sum(sharded(mesh, dtype, rows), {0});
}

void gather(const Mesh& mesh, at::ScalarType dtype, int64_t rows) {
  relayout_value(sharded(mesh, dtype, rows), Layout({nullptr, nullptr}, mesh));
}

void reduce(const Mesh& mesh, at::ScalarType dtype, int64_t rows) {
  resolve(addends(mesh, dtype, rows));
}

/// Calls different collectives on the faulty rank.
void mismatched(const Fault& fault, const Mesh& mesh, int64_t step) {
  if (fault.phase != "call" || fault.step != step) return;
  const NoRecording no_recording;
  const bool odd = fault.here;
  if (fault.kind == "shape") gather(mesh, at::kDouble, odd ? 24 : 16);
  if (fault.kind == "dtype") gather(mesh, odd ? at::kFloat : at::kDouble, 16);
  if (fault.kind == "op") (odd ? reduce : gather)(mesh, at::kDouble, 16);
  if (fault.kind == "skip" && !odd) gather(mesh, at::kDouble, 16);
  if (fault.kind == "twice") {
    for (int i = odd ? 0 : 1; i < 2; ++i) gather(mesh, at::kDouble, 16);
  }
  if (fault.kind == "order") {
    if (odd) reduce(mesh, at::kDouble, 8);
    gather(mesh, at::kDouble, 16);
    if (!odd) reduce(mesh, at::kDouble, 8);
  }
}

/// The small model, with the fault planted in its steps.
struct FaultyModel : Model {
  FaultyModel(const Sequential& made, Fault planted)
      : Model(LayerOptions()), fault(std::move(planted)) {
    for (const LayerHandle& layer : made.layers()) layers.push_back(track(layer));
  }
  std::string class_name() const override { return "FaultyModel"; }
  DTensor call(const Inputs& in, const CallContext& context) override {
    DTensor x = in[0];
    for (const LayerHandle& layer : layers) x = layer(x, context);
    return x;
  }
  StepValues train_step(const Batch& original) override {
    const int64_t step = optimizer()->steps();
    Batch batch = original;
    if (fault.kind == "nan" && fault.step == step) batch.x[0] = spoiled(batch.x[0]);
    mismatched(fault, batch.x[0].mesh(), step);
    GradientTape tape;
    fault.at("forward", step);
    const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
    const DTensor loss = compute_loss(batch, y_pred);
    if (fault.phase != "backward" && fault.phase != "update") {
      minimize(loss, tape);
    } else {
      apply_with_faults(loss, tape, step);
    }
    update_metrics(batch, y_pred);
    return loss;
  }
  StepValues test_step(const Batch& batch) override {
    fault.at("evaluate", optimizer()->steps());
    return Model::test_step(batch);
  }
  void apply_with_faults(const DTensor& loss, GradientTape& tape, int64_t step) {
    std::vector<DTensor> values;
    for (const Variable& variable : trainable_weights()) values.push_back(variable.value());
    const auto ready = [&](size_t, const DTensor&) { fault.at("backward", step); };
    const auto gradients = tape.gradient(loss, values, {.on_ready = ready});
    values.clear();
    fault.at("update", step);
    optimizer()->apply(gradients, trainable_weights());
  }
  /// The value, NaN on the faulty rank.
  DTensor spoiled(const DTensor& value) const {
    Blocks blocks = value.blocks();
    for (at::Tensor& block : blocks) {
      if (fault.here) block = block * NAN;
    }
    return DTensor(value.sharding(), blocks);
  }

  Fault fault;
  std::vector<LayerHandle> layers;
};

/// Prints every step's loss and saves checkpoints.
struct Watch : Callback {
  Watch(const Fault& planted, std::string folder, int64_t freq)
      : fault(planted), checkpoints(std::move(folder)), every(freq) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    const int64_t step = model().optimizer()->steps();
    if (params().is_first_rank) {
      std::printf("step %lld loss %.17g\n", static_cast<long long>(step), model_loss());
      std::fflush(stdout);
    }
    if (checkpoints.empty() || step % every != 0) return;
    fault.at("save", step - 1);
    Checkpoint(model()).save(checkpoints + "/" + checkpoint_name(step));
  }
  bool wants_batch_logs(int64_t) override { return false; }
  double model_loss() const { return model().history().steps.back(); }

  Fault fault;
  std::string checkpoints;
  int64_t every;
};

/// Hashes the bytes that the devices of this process hold.
std::string digest(const std::vector<Variable>& variables) {
  Xxh128 sum;
  for (const Variable& variable : variables) {
    const DTensor& value = variable.value();
    for (int device = 0; device < std::ssize(value.mesh().local_ids()); ++device) {
      const at::Tensor part = value.local(device).contiguous();
      sum.update({static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
    }
  }
  return sum.digits();
}

/// Prints how many slots are on disk, and a hash of all.
void print_slots(const std::vector<Variable>& slots) {
  const auto stored = std::count_if(slots.begin(), slots.end(), [](const Variable& slot) {
    return StoredValue::of(slot.value()) != nullptr;
  });
  std::printf("stored %td slots %s\n", stored, digest(slots).c_str());
}

/// Prints, for every kind of collective, its bytes in profile and log, and whether it was waited
/// for.
void print_profile(const Profile& profile, const CommLog& log) {
  for (const CommOp op : {CommOp::all_reduce, CommOp::all_gather, CommOp::reduce_scatter}) {
    int64_t spans = 0, waits = 0, entries = 0;
    for (const Profile::Row& row : profile.rows()) {
      if (row.name != to_string(op)) continue;
      if (row.kind == SpanKind::collective) spans += row.bytes;
      if (row.kind == SpanKind::wait) waits += row.calls;
    }
    for (const CommEntry& entry : log.entries()) entries += entry.op == op ? entry.bytes : 0;
    std::printf("%s: %lld bytes, logged %lld, waited %s\n", to_string(op).c_str(),
                static_cast<long long>(spans), static_cast<long long>(entries),
                waits > 0 ? "yes" : "no");
  }
}

/// Counts how many of its rows were read.
struct CountedRows final : Dataset {
  CountedRows(at::Tensor all, int64_t& count) : rows(std::move(all)), read(&count) {}
  int64_t size() const override { return rows.size(0); }
  Examples get(std::span<const int64_t> numbers) const override {
    *read += std::ssize(numbers);
    const at::Tensor index = at::tensor(std::vector<int64_t>(numbers.begin(), numbers.end()));
    return {.x = {rows.index_select(0, index)}};
  }
  std::vector<Shape> input_shapes() const override { return {rows.sizes().slice(1).vec()}; }
  at::Tensor rows;
  int64_t* read;
};

/// Adapts a Normalization; prints how many rows this process read, and the learned statistics.
void adapt_normalization(const Mesh& mesh, int64_t rows) {
  const DefaultMeshScope scope(mesh);
  int64_t read = 0;
  const Normalization layer;
  const at::Tensor data = at::arange(rows * 3, at::kDouble).remainder(17).view({rows, 3}) + 1000;
  layer.adapt(CountedRows(data.to(at::kFloat), read));
  std::printf("read %lld", static_cast<long long>(read));
  for (const size_t weight : {0, 1}) {
    const at::Tensor learned = layer->weights()[weight].value().full();
    for (int64_t i = 0; i < 3; ++i) std::printf(" %.9g", learned[i].item<double>());
  }
  std::printf("\n");
}

/// Prints what this rank's device was planned to hold at the peak of a step, and held, by use.
/// Layouts "never" are fully_shard with weights that stay gathered.
void print_step_memory(const Mesh& mesh, const Arguments& arguments) {
  const Mesh held = create_mesh_part(mesh.dims(), mesh.local_ids(), mesh.local_devices(),
                                     held_communicator(mesh.communicator()));
  LayoutMap layouts(arguments.number("held", 0) != 0 ? held : mesh);
  const std::string scheme = arguments.text("layouts", "data");
  if (scheme != "data") layouts.fully_shard({"batch", scheme == "fully_shard"});
  const double bucket_cap_mb =
      arguments.number("buckets", 1) != 0 ? detail::default_bucket_cap_mb : 0;
  const DevicePeak peak = step_peaks(layouts, bucket_cap_mb).at(0);
  for (MemoryUse use : memory_uses) {
    std::printf("%s %.0f %.0f\n", to_string(use), peak.planned[use], peak.measured[use]);
  }
}

/// Prints the tokens that a small model adds to two texts by sampling and by beam search, and how
/// many calls were replayed.
void print_texts(const Mesh& mesh) {
  set_dtype_policy(dtype_policy("float64"));
  const InitializerHandle wide = RandomNormal({.stddev = 0.8});
  constexpr int64_t vocabulary = 23, width = 16;
  const Sequential model({Embedding(vocabulary, width, {.embeddings_initializer = wide}),
                          TransformerBlock({.num_heads = 4,
                                            .hidden_dim = 16,
                                            .num_key_value_heads = 2,
                                            .rotary = ops::RotaryOptions{},
                                            .use_causal_mask = true,
                                            .name = "block"}),
                          Dense(vocabulary, {.kernel_initializer = wide, .name = "logits"})});
  LayoutMap layouts(mesh);
  if (mesh.dims().back().first == "model") {
    layouts["block.*(query|key|value)/kernel"] = {unsharded, "model", unsharded};
    layouts["block.*attention_output/kernel"] = {"model", unsharded, unsharded};
    layouts["logits/kernel"] = {unsharded, "model"};
  }
  model.compile({.layouts = layouts});
  for (const int64_t beams : {1, 3}) {
    GenerateOptions options{.max_new_tokens = 12, .num_beams = beams};
    if (beams == 1) options.temperature = 2;
    Continuation texts(model, {{5, 8, 7}, {2}}, options);
    while (!texts.complete()) texts.step();
    for (const GeneratedTokens& text : texts.texts()) {
      for (const int64_t token : text.tokens) std::printf("%lld ", static_cast<long long>(token));
    }
    std::printf("replayed %lld\n", static_cast<long long>(texts.step_records().replayed));
  }
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const StopSignals signals;
  const char* rank = std::getenv("RANK");
  const bool here = rank && arguments.text("rank") == rank;
  const Fault fault{arguments.text("fault"), arguments.text("at"), arguments.number("step", 0),
                    here, arguments.number("delay", 0)};
  fault.at("start", 0);
  set_random_seed(arguments.number(here ? "odd_seed" : "seed", arguments.number("seed", 7)));
  const auto seconds = [&](const char* name, int64_t otherwise) {
    return std::chrono::milliseconds(arguments.number(name, otherwise));
  };
  const std::string dims = arguments.text("mesh", "batch=4");
  const Mesh mesh =
      create_distributed_mesh(parse_mesh_dims(arguments.text(here ? "odd_mesh" : "mesh", dims)),
                              {.connect_timeout = seconds("connect_timeout", 60000),
                               .timeout = seconds("timeout", 60000),
                               .always_check = arguments.number("always_check", 0) != 0,
                               .shared_memory = arguments.number("shared_memory", 1) != 0});
  fault.at("connected", 0);
  if (arguments.number("adapt", 0) != 0) {
    adapt_normalization(mesh, arguments.number("adapt", 0));
    return 0;
  }
  if (arguments.number("texts", 0) != 0) {
    print_texts(mesh);
    return 0;
  }
  if (arguments.number("memory", 0) != 0) {
    print_step_memory(mesh, arguments);
    return 0;
  }
  const ModelHandle model(std::make_shared<FaultyModel>(small_model(), fault));
  const std::string scheme = arguments.text("layouts", "data");
  LayoutMap layouts = small_layouts(arguments.text(here ? "odd_layouts" : "layouts", scheme), mesh);
  const std::string slots = arguments.text("slots");
  if (!slots.empty() && slots != "memory") layouts.set_memory({.slots = "disk:" + slots});
  model.compile(small_compile(layouts));
  const int64_t rows = arguments.number(here ? "odd_rows" : "rows", arguments.number("rows", 320));
  FitOptions options{.batch_size = arguments.number("batch", 32),
                     .epochs = static_cast<int64_t>(arguments.number("epochs", 2)),
                     .verbose = 0};
  if (arguments.number("validate", 0) != 0) options.validation_data = small_data(40, 2);
  options.callbacks.push_back(
      Watch(fault, arguments.text("checkpoints"), arguments.number("every", 5)));
  if (!arguments.text("backup").empty()) {
    options.callbacks.push_back(BackupAndRestore(
        arguments.text("backup"),
        {.save_freq = static_cast<int>(arguments.number("every", 5)), .delete_checkpoint = false}));
  }
  const bool profiled = arguments.number("profile", 0) != 0;
  std::optional<Profile> profile;
  if (profiled) profile.emplace();
  CommLog log;
  {
    const CommLogScope scope(log);
    model.fit(small_data(rows), options);
  }
  if (profiled) print_profile(*profile, log);
  std::printf("weights %s\n", digest(model.weights()).c_str());
  if (!slots.empty()) print_slots(model->optimizer()->variables());
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
