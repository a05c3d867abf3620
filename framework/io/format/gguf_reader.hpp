#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/io/format/checkpoint_grid.hpp>
#include <tessera/framework/io/format/gguf_types.hpp>

namespace tessera::detail {

/// A tensor of a GGUF file, row-major as in other formats: the file lists its axes in reverse.
struct GgufTensor {
  std::string name;
  Shape shape;
  uint32_t type = 0;    ///< llama.cpp's number of its type
  uint64_t offset = 0;  ///< offset of its bytes in the file
};

/// Reads untrusted GGUF files, versions 2 and 3, as llama.cpp's programs write them. Every failure
/// is a FileError naming the file and, if it is about one, the tensor. Refuses types that
/// gguf_type() has no blocks of, tensors with gaps between them and duplicate names. Thread-safe
/// for reads.
class GgufReader {
 public:
  /// Opens a file and reads everything before the tensors' bytes.
  explicit GgufReader(const std::string& path);

  const std::string& path() const { return path_; }
  /// Returns the numbers, bools and texts by their keys. Arrays, such as vocabularies, are null.
  const std::map<std::string, Json>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// Fills `out`, row-major, with a rectangle of a tensor as float32, which is exact. Reads only
  /// the blocks that the rectangle has elements of.
  void read(const GgufTensor& tensor, const Rectangle& area, std::span<float> out) const;

 private:
  void read_range(const GgufTensor& tensor, uint64_t first, std::span<float> out) const;

  std::string path_;
  InputFile input_;
  std::map<std::string, Json> metadata_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace tessera::detail
