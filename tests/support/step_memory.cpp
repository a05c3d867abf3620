#include "tests/support/step_memory.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::test {

using namespace detail;

Sequential wide_layers(int64_t depth, const LayoutMap& layouts, double bucket_cap_mb) {
  std::vector<LayerHandle> layers;
  for (int64_t i = 0; i < depth; ++i) layers.push_back(Dense(256, {.activation = "tanh"}));
  const Sequential model(layers);
  model.compile(
      {.optimizer = Adam(1e-3), .loss = "mse", .layouts = layouts, .bucket_cap_mb = bucket_cap_mb});
  model.build({64, 256});
  return model;
}

Examples wide_batch() { return {.x = {at::rand({64, 256})}, .y = {at::rand({64, 256})}}; }

std::vector<DevicePeak> step_peaks(const LayoutMap& layouts, double bucket_cap_mb) {
  // The program's own copy of the data is not the step's.
  const Examples batch = wide_batch();
  DeviceMemory memory;
  const Sequential model = wide_layers(6, layouts, bucket_cap_mb);
  const StepPlan plan = model.plan(TensorDataset(batch), {.batch_size = 64});
  for (int step = 0; step < 3; ++step) model.train_on_batch(batch);
  if (model.step_records().replayed < 1) {
    throw StateError("step_peaks", "the third step is replayed", model.step_records().why, "");
  }
  const Batch packed = pack_batch(Examples(batch), layouts);
  memory.reset_peaks();
  model.model().train_step(packed);
  std::vector<DevicePeak> peaks;
  for (const int64_t id : layouts.mesh().local_ids()) {
    const auto device = static_cast<int64_t>(peaks.size());
    peaks.push_back({plan.peaks[static_cast<size_t>(id)], memory.at_peak(device)});
  }
  return peaks;
}

}  // namespace tessera::test
