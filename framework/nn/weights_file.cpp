#include <tessera/framework/nn/weights_file.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr const char* other_model =
    "load a file of the same model; a Checkpoint restores a part of one, with expect_partial";

std::string dtype_of(const Variable& weight) {
  return safetensors_dtype(weight.dtype(), weight.path());
}

const SafeTensor& matching(const SafetensorsFile& file, const Variable& weight) {
  const SafeTensor* found = file.find(weight.path());
  if (!found) {
    std::vector<std::string> names;
    for (const SafeTensor& tensor : file.tensors()) names.push_back(tensor.name);
    const std::string name = nearest(weight.path(), names);
    throw FileError(file.path(), "the file holds the weight " + in_quotes(weight.path()),
                    name.empty() ? "no name like it" : "the nearest is " + in_quotes(name),
                    other_model);
  }
  if (found->shape != weight.shape() || found->dtype != dtype_of(weight)) {
    throw FileError(file.path(), str("tensor ", in_quotes(weight.path()), " has shape ",
                    to_string(weight.shape()), " and dtype ", dtype_of(weight)),
                    str(to_string(found->shape), " and ", found->dtype),
                    found->shape == weight.shape() ? dtype_fix(found->dtype)
                                                   : other_model);
  }
  return *found;
}

void check_built(const Layer& model) {
  if (model.built()) return;
  throw StateError("weights", "the model is built", "a model whose weights are not known yet",
                   "call build() with an input shape first");
}

}  // namespace

void save_weights(const Layer& model, const std::string& path) {
  check_built(model);
  const c10::InferenceMode inference;
  const std::vector<Variable> weights = model.weights();
  const Mesh mesh = weights.empty() ? default_mesh() : weights.front().layout().mesh();
  std::vector<at::Tensor> whole;
  std::vector<SafeTensor> tensors;
  for (const Variable& weight : weights) {
    whole.push_back(weight.value().full().contiguous());
    const at::Tensor& tensor = whole.back();
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    tensors.push_back({weight.path(), dtype_of(weight), weight.shape(),
                       {bytes, static_cast<size_t>(tensor.nbytes())}});
  }
  collectively(mesh, path, [&] {
    if (is_first_rank(mesh)) write_safetensors(path, tensors, {{"format", "tessera"}});
  });
}

void load_weights(Layer& model, const std::string& path) {
  check_built(model);
  const c10::InferenceMode inference;
  const SafetensorsFile file(path);
  std::vector<std::pair<Variable, const SafeTensor*>> pairs;
  for (const Variable& weight : model.weights())
    pairs.emplace_back(weight, &matching(file, weight));
  for (auto& [weight, tensor] : pairs) {
    at::Tensor whole = at::empty(weight.shape(), at::TensorOptions().dtype(weight.dtype()));
    std::copy(tensor->data.begin(), tensor->data.end(), static_cast<std::byte*>(whole.data_ptr()));
    weight.assign(pack(std::move(whole), weight.layout()));
  }
}

}  // namespace tessera
