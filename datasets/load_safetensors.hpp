#pragma once

#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace tessera::datasets {

/// Reads all tensors of a safetensors file by name, on the host, in the file's dtypes, except that
/// uint16 becomes int32, and uint32 and uint64 become int64. A path that ends in .json is an index
/// of several files beside it, as Hugging Face's programs write it
/// (`model.safetensors.index.json`). Tensors of a file share its memory.
///
///     const auto tensors = datasets::load_safetensors("model.safetensors");
///     const at::Tensor kernel = tensors.at("dense.weight").t();
///
/// Throws FileError naming the file, and the tensor where it applies, for a dtype that tensors do
/// not have (numbers of 4 or 6 bits), integers of 2^63 and above, and damaged files; ConfigError
/// for an index that is none.
std::map<std::string, at::Tensor> load_safetensors(const std::string& path);

}  // namespace tessera::datasets
