#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/table.hpp>

namespace tessera::datasets {

/// Reads an array that numpy.save() wrote. Throws FileError naming the file and the byte for
/// numbers that tensors do not have, another order of axes or bytes, objects, or a header that does
/// not fit the file.
at::Tensor load_npy(const std::string& path);

/// Writes what numpy.load() reads, in one step; bfloat16 becomes float32. Throws FileError if it
/// cannot be written.
void save_npy(const std::string& path, const at::Tensor& array);

/// Reads the arrays of a file that numpy.savez() or numpy.savez_compressed() wrote, as columns
/// named as there. All have equally many rows. Throws FileError naming the file and the array, as
/// load_npy() does.
///
///     Table table = datasets::load_npz("data.npz");
///     model.fit(table["x"].numbers(), table["y"].numbers());
Table load_npz(const std::string& path);

/// Reads one array of such a file, of any shape. Throws ConfigError naming the nearest if there is
/// none of that name.
at::Tensor load_npz(const std::string& path, const std::string& name);

/// Writes the columns of a table as numpy.savez() does, in one step. Throws ConfigError for a
/// column of texts, FileError if it cannot be written.
void save_npz(const std::string& path, const Table& table);

}  // namespace tessera::datasets
