#pragma once

#include <map>
#include <string>
#include <vector>

namespace tessera::detail {

/// Returns whether a path is that of an index of safetensors files by its name, such as
/// "model.safetensors.index.json".
bool is_safetensors_index(const std::string& path);

/// Reads an index as Hugging Face's programs write it. Returns the names of the tensors by the path
/// of their file, which is beside the index. Throws ConfigError for an invalid index.
std::map<std::string, std::vector<std::string>> read_safetensors_index(const std::string& path);

/// Throws FileError for a file that lacks a tensor of the index.
[[noreturn]] void fail_missing_in_file(const std::string& file, const std::string& tensor,
                                       const std::string& index);

}  // namespace tessera::detail
