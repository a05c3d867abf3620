#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/datasets/pipeline/internal/pipeline_stage.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A cache file of pipeline elements, each stored after its checksum. The elements are followed by
/// an offset table (the begin of each element and the end of the last) and a 128-byte footer: the
/// number of elements, the position of the offset table, its checksum, the fingerprint of the data,
/// and a magic string.
class ElementFile {
 public:
  /// Opens an existing file. Throws FileError if it is no cache file or damaged, ConfigError
  /// beginning with `where` if its fingerprint is not `fingerprint`.
  ElementFile(const std::string& path, const std::string& fingerprint, const std::string& where);

  int64_t size() const { return std::ssize(offsets_) - 1; }
  /// Reads an element. Thread-safe. Throws FileError naming the file and the byte where it is
  /// damaged.
  Examples read(int64_t number) const;

 private:
  std::string path_;
  FileDescriptor file_;
  std::vector<uint64_t> offsets_;
};

/// Opens the cache file at `path`. If it is missing, writes all elements to it first, by one
/// process at a time. `text` describes the stages that made the elements and is part of the
/// fingerprint; errors begin with `where`.
std::shared_ptr<const ElementFile> element_file(const std::string& path,
                                                const PipelineElements& elements,
                                                const std::string& text, int64_t threads,
                                                const std::string& where);

}  // namespace tessera::detail
