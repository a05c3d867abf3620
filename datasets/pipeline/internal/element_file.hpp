#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/datasets/pipeline/internal/pipeline_stage.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A file of a pipeline's elements, each with its checksum. Behind them lie the offsets at which
/// they begin and that of the end; then, in the last 128 bytes, the number of the elements, where
/// the offsets begin, their checksum, that of what is known of the data, and a mark.
class ElementFile {
 public:
  /// Opens a file that is there. Throws FileError if it is none of these or damaged, ConfigError
  /// beginning with `where` if it is of data of another `fingerprint`.
  ElementFile(const std::string& path, const std::string& fingerprint, const std::string& where);

  int64_t size() const { return std::ssize(offsets_) - 1; }
  /// An element. May be called from several threads at a time. Throws FileError naming the file and
  /// the byte where it is damaged.
  Examples read(int64_t number) const;

 private:
  std::string path_;
  FileDescriptor file_;
  std::vector<uint64_t> offsets_;
};

/// The file of all elements, written before if it is not there by one process at a time. `text`
/// says how they were made, `where` begins errors.
std::shared_ptr<const ElementFile> element_file(const std::string& path,
                                                const PipelineElements& elements,
                                                const std::string& text, int64_t threads,
                                                const std::string& where);

}  // namespace tessera::detail
