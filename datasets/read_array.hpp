#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/table.hpp>

namespace tessera::datasets {

/// Reads an array that numpy.save() wrote, row-major or column-major, in any byte order. The
/// dtype is kept, except that uint16 becomes int32, and uint32 and uint64 become int64. Throws
/// FileError naming the file for texts, objects and other dtypes that tensors do not have, integers
/// of 2^63 and above, and, with the byte, a header that does not match the file.
at::Tensor load_npy(const std::string& path);

/// Writes a file for numpy.load(), atomically; bfloat16 becomes float32. Throws FileError if it
/// cannot be written, ConfigError for another dtype that NumPy does not have.
void save_npy(const std::string& path, const at::Tensor& array);

/// Reads the arrays of a file that numpy.savez() or numpy.savez_compressed() wrote, as columns of
/// the same names. Arrays of texts, one in each row, become columns of texts. Throws FileError
/// naming the file and the array unless all have equally many rows, and as load_npy() does.
///
///     Table table = datasets::load_npz("data.npz");
///     model.fit(table["x"].numbers(), table["y"].numbers());
Table load_npz(const std::string& path);

/// Reads one array of an .npz file, of any shape, as load_npy() does. Throws ConfigError that
/// suggests the nearest name if there is no array `name`.
at::Tensor load_npz(const std::string& path, const std::string& name);

/// Arrays of a file by name, of any shapes: {{"x", x}, {"y", y}}, or the columns of a table.
class NpzArrays {
 public:
  NpzArrays(std::initializer_list<std::pair<std::string, at::Tensor>> arrays)
      : arrays_(arrays) {}  // NOLINT: reads as data
  NpzArrays(std::vector<std::pair<std::string, at::Tensor>> arrays)
      : arrays_(std::move(arrays)) {}  // NOLINT
  /// Throws ConfigError for a column of texts.
  NpzArrays(const Table& table);  // NOLINT
  const std::vector<std::pair<std::string, at::Tensor>>& all() const { return arrays_; }

 private:
  std::vector<std::pair<std::string, at::Tensor>> arrays_;
};

/// Writes arrays as numpy.savez() does, atomically. Throws ConfigError for two arrays of one name,
/// FileError if the file cannot be written.
void save_npz(const std::string& path, const NpzArrays& arrays);

}  // namespace tessera::datasets
