#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// The attribute of an HDF5 file's root group in which Tessera stores the checksum of the content:
/// 32 hexadecimal digits. Keras and h5py ignore it.
inline constexpr const char* hdf5_checksum_name = "xxh128";

/// Returns the value of that attribute before the data is written.
std::string no_hdf5_checksum();

/// Returns the CRC-32 of the bytes [begin, end) of a file; each process of the mesh reads one part.
/// `path` names the file in errors. Collective. Throws FileError.
uint32_t shared_crc32(const Mesh& mesh, const FileDescriptor& file, uint64_t begin, uint64_t end,
                      const std::string& path);

/// Returns the checksum of an HDF5 file's content: the XXH3-128 of the paths and attributes of its
/// groups, except for the checksum, the paths, dtypes, shapes and attributes of its datasets, and
/// the XXH3-128 of each MiB of their data. Each process of the mesh reads one part. Collective.
/// Throws FileError.
std::string shared_hdf5_checksum(const Mesh& mesh, const Hdf5File& file);

}  // namespace tessera::detail
