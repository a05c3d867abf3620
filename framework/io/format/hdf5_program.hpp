#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/helper_program.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// The part of an open file that is the HDF5 file.
struct Hdf5Part {
  uint64_t base = 0;
  uint64_t size = 0;
};

/// Runs the helper program tessera-hdf5 on one file: the HDF5 library in a sandboxed process, so
/// that a malicious file can crash that process only. Every failure is a FileError naming the file;
/// a program that is missing, or whose libraries are, is a StateError.
class Hdf5Program {
 public:
  enum class Work { read, write };
  /// `path` is for errors.
  Hdf5Program(Work work, const FileDescriptor& file, const Hdf5Part& part, std::string path);

  /// Sends a line.
  void ask(const std::string& line);
  /// Receives an answer in JSON.
  Json answer();
  /// Receives `bytes` bytes of data and passes them to `take` in parts.
  void take_data(uint64_t bytes, const std::function<void(std::span<const std::byte>)>& take);

 private:
  struct Message {
    char kind;
    std::string bytes;
  };
  Message receive(uint64_t max_bytes);
  void read_exactly(std::span<char> out);
  [[noreturn]] void fail(const std::string& received);

  std::string path_;
  Work work_;
  FileDescriptor connection_;
  std::optional<HelperProgram> process_;
};

}  // namespace tessera::detail
