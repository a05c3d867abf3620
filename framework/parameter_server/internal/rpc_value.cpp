#include <tessera/framework/parameter_server/internal/rpc_value.hpp>

#include <array>
#include <cstring>

#include <ATen/ops/empty.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {

using namespace strategy;

namespace {

constexpr std::array sent_dtypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                    at::kBool,  at::kByte,   at::kInt,  at::kLong};
constexpr int max_axes = 64;

at::ScalarType dtype_of(const std::string& name, const std::string& where) {
  for (at::ScalarType dtype : sent_dtypes) {
    if (safetensors_dtype(dtype, where) == name) return dtype;
  }
  throw ConfigError(where, "a tensor must have a safetensors dtype", in_quotes(name), "");
}

/// Returns the size of a tensor in bytes; -1 if its shape is invalid or exceeds a message.
int64_t bytes_of(const rpc::Tensor& tensor, at::ScalarType dtype) {
  if (tensor.shape_size() > max_axes) return -1;
  int64_t bytes = static_cast<int64_t>(c10::elementSize(dtype));
  for (int64_t extent : tensor.shape()) {
    if (extent < 0 || (extent > 0 && bytes > max_message_bytes / extent)) return -1;
    bytes *= extent;
  }
  return bytes;
}

at::Tensor from_message(const rpc::Tensor& message, const std::string& where) {
  const at::ScalarType dtype = dtype_of(message.dtype(), where);
  const int64_t bytes = bytes_of(message, dtype);
  if (bytes < 0 || bytes != static_cast<int64_t>(message.data().size())) {
    throw ConfigError(where, "the size of a tensor's data must match its shape",
                      str(message.data().size(), " bytes"), "");
  }
  const std::vector<int64_t> shape(message.shape().begin(), message.shape().end());
  at::Tensor tensor = at::empty(shape, dtype);
  if (bytes > 0) std::memcpy(tensor.data_ptr(), message.data().data(), message.data().size());
  return tensor;
}

}  // namespace

rpc::Value to_message(const ClosureValue& value, const std::string& where) {
  rpc::Value message;
  message.set_json(to_json_text(value.json, -1));
  for (const at::Tensor& tensor : value.tensors) {
    if (!tensor.defined())
      throw ConfigError(where, "tensors must be defined", "an undefined one", "");
    const at::Tensor host = tensor.cpu().contiguous();
    rpc::Tensor& sent = *message.add_tensors();
    sent.set_dtype(safetensors_dtype(host.scalar_type(), where));
    for (int64_t extent : host.sizes()) sent.add_shape(extent);
    if (host.numel() > 0) sent.set_data(host.data_ptr(), host.nbytes());
  }
  if (message.ByteSizeLong() > static_cast<size_t>(max_message_bytes)) {
    throw ConfigError(where, str("at most ", max_message_bytes, " bytes at a time"),
                      str(message.ByteSizeLong(), " bytes"), "send less, or keep it in variables");
  }
  return message;
}

ClosureValue from_message(const rpc::Value& message, const std::string& where) {
  ClosureValue value;
  value.json = message.json().empty() ? Json(nullptr) : parse_json(message.json(), where);
  for (const rpc::Tensor& tensor : message.tensors()) {
    value.tensors.push_back(from_message(tensor, where));
  }
  return value;
}

}  // namespace tessera::detail
