#include <tessera/datasets/load_safetensors.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/internal/stored_numbers.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/safetensors_index.hpp>

namespace tessera {

using namespace detail;

namespace {

using NamedTensors = std::map<std::string, at::Tensor>;

at::Tensor tensor_in(const std::shared_ptr<const SafetensorsFile>& file, const SafeTensor& stored) {
  const std::string where = str(file->path(), ", tensor ", in_quotes(stored.name));
  const std::optional<at::ScalarType> dtype = stored_dtype(stored.dtype);
  if (!dtype) {
    throw FileError(where, "a dtype that tensors have", stored.dtype,
                    "write the tensor in another dtype");
  }
  const auto options = at::TensorOptions().dtype(*dtype);
  // The file's memory is not constant, and only its tensors use it.
  auto* const data = const_cast<std::byte*>(stored.data.data());
  at::Tensor tensor = stored.data.empty() ? at::empty(stored.shape, options)
                                          : at::from_blob(
                                                data, stored.shape, [file](void*) {}, options);
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % tensor.element_size() == 0;
  if (!is_aligned) tensor = tensor.clone();
  return without_unsigned(tensor, where, "write the tensor as int64 or float64");
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
