#include <ATen/ATen.h>

#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {

History Model::fit(const DatasetHandle& data) { return fit(data, FitOptions()); }
History Model::fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options) {
  return fit(DatasetHandle(x, y), options);
}
History Model::fit(const at::Tensor& x, const at::Tensor& y) { return fit(x, y, FitOptions()); }

Logs Model::evaluate(const DatasetHandle& data) { return evaluate(data, EvaluateOptions()); }
Logs Model::evaluate(const at::Tensor& x, const at::Tensor& y, const EvaluateOptions& options) {
  return evaluate(DatasetHandle(x, y), options);
}
Logs Model::evaluate(const at::Tensor& x, const at::Tensor& y) {
  return evaluate(x, y, EvaluateOptions());
}

at::Tensor Model::predict(const DatasetHandle& data) { return predict(data, PredictOptions()); }
std::vector<at::Tensor> Model::predict_all(const DatasetHandle& data) {
  return predict_all(data, PredictOptions());
}

History ModelHandle::fit(const DatasetHandle& data, const FitOptions& options) const {
  return model().fit(data, options);
}
History ModelHandle::fit(const DatasetHandle& data) const { return model().fit(data); }
History ModelHandle::fit(const at::Tensor& x, const at::Tensor& y,
                         const FitOptions& options) const {
  return model().fit(x, y, options);
}
History ModelHandle::fit(const at::Tensor& x, const at::Tensor& y) const {
  return model().fit(x, y);
}

Logs ModelHandle::evaluate(const DatasetHandle& data, const EvaluateOptions& options) const {
  return model().evaluate(data, options);
}
Logs ModelHandle::evaluate(const DatasetHandle& data) const { return model().evaluate(data); }
Logs ModelHandle::evaluate(const at::Tensor& x, const at::Tensor& y,
                           const EvaluateOptions& options) const {
  return model().evaluate(x, y, options);
}
Logs ModelHandle::evaluate(const at::Tensor& x, const at::Tensor& y) const {
  return model().evaluate(x, y);
}

at::Tensor ModelHandle::predict(const DatasetHandle& data, const PredictOptions& options) const {
  return model().predict(data, options);
}
at::Tensor ModelHandle::predict(const DatasetHandle& data) const { return model().predict(data); }
std::vector<at::Tensor> ModelHandle::predict_all(const DatasetHandle& data,
                                                 const PredictOptions& options) const {
  return model().predict_all(data, options);
}
std::vector<at::Tensor> ModelHandle::predict_all(const DatasetHandle& data) const {
  return model().predict_all(data);
}

}  // namespace tessera
