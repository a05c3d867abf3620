#include <tessera/datasets/load_safetensors.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/safetensors_index.hpp>

namespace tessera {

using namespace detail;

namespace {

using NamedTensors = std::map<std::string, at::Tensor>;

/// A dtype of safetensors, and the one that it is read as.
struct StoredDtype {
  const char* name;
  at::ScalarType stored;
  at::ScalarType dtype;
};
constexpr StoredDtype stored_dtypes[] = {
    {"F32", at::kFloat, at::kFloat},
    {"F64", at::kDouble, at::kDouble},
    {"F16", at::kHalf, at::kHalf},
    {"BF16", at::kBFloat16, at::kBFloat16},
    {"I64", at::kLong, at::kLong},
    {"I32", at::kInt, at::kInt},
    {"I16", at::kShort, at::kShort},
    {"I8", at::kChar, at::kChar},
    {"U64", at::kUInt64, at::kLong},
    {"U32", at::kUInt32, at::kLong},
    {"U16", at::kUInt16, at::kInt},
    {"U8", at::kByte, at::kByte},
    {"BOOL", at::kBool, at::kBool},
    {"C64", at::kComplexFloat, at::kComplexFloat},
    {"F8_E5M2", at::kFloat8_e5m2, at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn, at::kFloat8_e4m3fn},
    {"F8_E8M0", at::kFloat8_e8m0fnu, at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz, at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz, at::kFloat8_e5m2fnuz}};

at::Tensor tensor_in(const std::shared_ptr<const SafetensorsFile>& file, const SafeTensor& stored) {
  const std::string where = str(file->path(), ", tensor ", in_quotes(stored.name));
  const auto* const dtype =
      std::find_if(std::begin(stored_dtypes), std::end(stored_dtypes),
                   [&](const StoredDtype& known) { return known.name == stored.dtype; });
  if (dtype == std::end(stored_dtypes)) {
    throw FileError(where, "a dtype that tensors have", stored.dtype,
                    "write the tensor in another dtype");
  }
  const auto options = at::TensorOptions().dtype(dtype->stored);
  // The file's memory is not constant, and only its tensors use it.
  auto* const data = const_cast<std::byte*>(stored.data.data());
  at::Tensor tensor = stored.data.empty() ? at::empty(stored.shape, options)
                                          : at::from_blob(
                                                data, stored.shape, [file](void*) {}, options);
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % tensor.element_size() == 0;
  if (!is_aligned) tensor = tensor.clone();
  if (dtype->dtype == dtype->stored) return tensor;
  tensor = tensor.to(dtype->dtype);
  if (dtype->stored == at::kUInt64 && tensor.lt(0).any().item<bool>()) {
    throw FileError(where, "integers below 2^63", "larger ones",
                    "write the tensor as int64 or float64");
  }
  return tensor;
}

NamedTensors read_one_file(const std::string& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  NamedTensors tensors;
  for (const SafeTensor& stored : file->tensors()) {
    tensors.emplace(stored.name, tensor_in(file, stored));
  }
  return tensors;
}

}  // namespace

NamedTensors datasets::load_safetensors(const std::string& path) {
  const c10::InferenceMode inference;
  if (!path.ends_with(".json")) return read_one_file(path);
  NamedTensors all;
  for (const auto& [file, names] : read_safetensors_index(path)) {
    NamedTensors tensors = read_one_file(file);
    for (const std::string& name : names) {
      auto found = tensors.extract(name);
      if (found.empty()) fail_missing_in_file(file, name, path);
      all.insert(std::move(found));
    }
  }
  return all;
}

}  // namespace tessera
