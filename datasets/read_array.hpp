#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include <tessera/framework/data/table.hpp>

namespace tessera::datasets {

/// Reads an array that numpy.save() wrote. Throws FileError naming the file and the byte for a
/// dtype that tensors do not have, Fortran order, another byte order, objects, or a header that
/// does not match the file.
at::Tensor load_npy(const std::string& path);

/// Writes a file for numpy.load(), atomically; bfloat16 becomes float32. Throws FileError if it
/// cannot be written.
void save_npy(const std::string& path, const at::Tensor& array);

/// Reads the arrays of a file that numpy.savez() or numpy.savez_compressed() wrote, as columns of
/// the same names. Throws FileError naming the file and the array unless all have equally many
/// rows, and as load_npy() does.
///
///     Table table = datasets::load_npz("data.npz");
///     model.fit(table["x"].numbers(), table["y"].numbers());
Table load_npz(const std::string& path);

/// Reads one array of an .npz file, of any shape. Throws ConfigError that suggests the nearest name
/// if there is no array `name`.
at::Tensor load_npz(const std::string& path, const std::string& name);

/// Writes the columns of a table as numpy.savez() does, atomically. Throws ConfigError for a text
/// column, FileError if the file cannot be written.
void save_npz(const std::string& path, const Table& table);

}  // namespace tessera::datasets
