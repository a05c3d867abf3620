#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/table.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera::test {

/// The hash of everything that was read from a file.
class Content {
 public:
  void add(std::span<const std::byte> bytes);
  void add(const std::string& text);
  void add(const at::Tensor& tensor);
  void add(const Table& table);
  /// Adds the weights of a model and the variables of its optimizer, with their paths.
  void add(const ModelHandle& model);
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 14695981039346656037U;  // FNV-1a
};

/// A kind of file or folder that Tessera reads.
struct Format {
  std::string name;
  std::string file;  ///< a name that such a file may have
  std::function<void(const std::string& path, Content& content)> read;
  /// Writes one of several contents, numbered from 1 on; empty if Tessera does not write the
  /// format.
  std::function<void(const std::string& path, int64_t variant)> write = {};
};

const std::vector<Format>& formats();

/// Formats that need Arrow; none if the build has none.
std::vector<Format> arrow_formats();

}  // namespace tessera::test
