#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/training/data_views.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

/// All rows of a batch, checked and in memory that nobody else holds.
Examples copied(const Examples& batch, const std::string& caller) {
  const DatasetHandle data(batch);
  check_data(caller, data);
  std::vector<int64_t> rows(static_cast<size_t>(data->size()));
  std::iota(rows.begin(), rows.end(), 0);
  return data->get(rows);
}

}  // namespace

Logs Model::train_on_batch(const Examples& batch) {
  Training& state = training("train_on_batch");
  Examples examples = copied(batch, "train_on_batch");
  if (!state.placed) ensure_placed(batch_shapes(batch));
  state.train(*this, std::move(examples));
  return state.logs();
}

Logs Model::test_on_batch(const Examples& batch) {
  Training& state = training("test_on_batch");
  Examples examples = copied(batch, "test_on_batch");
  if (!state.placed) ensure_placed(batch_shapes(batch));
  state.test(*this, std::move(examples));
  return state.logs();
}

std::vector<at::Tensor> Model::predict_on_batch(const Examples& batch) {
  if (!compiled()) compile(CompileOptions());
  Training& state = training("predict_on_batch");
  Examples examples = copied(batch, "predict_on_batch");
  if (!state.placed) ensure_placed(batch_shapes(batch));
  return state.predict(*this, std::move(examples));
}

void Model::reset_metrics() { training("reset_metrics").reset_metrics(); }
bool Model::stop_training() const { return training("stop_training").stop; }
void Model::set_stop_training(bool stop) { training("set_stop_training").stop = stop; }

}  // namespace tessera
