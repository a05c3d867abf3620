#include <tessera/datasets/read_array.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/datasets/files/npy.hpp>
#include <tessera/datasets/internal/stored_numbers.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr uint64_t max_array_bytes = uint64_t{1} << 36;

/// Returns NumPy's dtype of a tensor, by its name in safetensors.
std::string array_dtype(at::ScalarType dtype, const std::string& path) {
  const std::optional<std::string> name = stored_name(dtype);
  const bool is_of_numpy = dtype != at::kBFloat16 && !at::isFloat8Type(dtype);
  if (name && is_of_numpy) return *name;
  throw ConfigError(path, "a dtype that NumPy has", dtype_name(dtype), "cast it to float32");
}

at::Tensor tensor_of(const NpyArray& array, const std::string& where) {
  if (array.texts) {
    throw FileError(where, "an array of numbers", "texts",
                    "save it by numpy.savez: load_npz(path) reads it as a column of texts");
  }
  Shape shape = array.shape;
  if (array.fortran_order) std::reverse(shape.begin(), shape.end());
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(*stored_dtype(array.dtype)));
  if (!array.data.empty()) {
    std::memcpy(tensor.mutable_data_ptr(), array.data.data(), array.data.size());
  }
  if (array.fortran_order) {
    Shape axes(shape.size());
    std::iota(axes.rbegin(), axes.rend(), int64_t{0});
    tensor = tensor.permute(axes).contiguous();
  }
  return without_unsigned(tensor, where, "save x.astype() of int64 or float64");
}

/// Converts a tensor to contiguous host memory of a dtype that NumPy has.
at::Tensor storable(const at::Tensor& array) {
  // NumPy has no bfloat16.
  const at::Tensor known = array.scalar_type() == at::kBFloat16 ? array.to(at::kFloat) : array;
  return known.cpu().resolve_conj().resolve_neg().contiguous();
}

std::span<const std::byte> bytes_of(const at::Tensor& array) {
  return {static_cast<const std::byte*>(array.const_data_ptr()), array.nbytes()};
}

ZipArchive open_npz(const std::string& path) {
  return ZipArchive(path, "save the arrays anew with numpy.savez");
}

/// Returns "x" for "x.npy"; empty if the member is no array.
std::string array_name(const ZipMember& member) {
  constexpr std::string_view ending = ".npy";
  if (!member.name.ends_with(ending)) return "";
  return member.name.substr(0, member.name.size() - ending.size());
}

std::string array_place(const ZipArchive& archive, const ZipMember& member) {
  return archive.path() + ", " + one_line(member.name);
}

NpyArray array_in(const ZipArchive& archive, const ZipMember& member) {
  return parse_npy(archive.read(member, max_array_bytes), array_place(archive, member));
}

/// Returns the number of rows; nothing for an array that is no column of a table.
std::optional<int64_t> rows_of(const NpyArray& array) {
  if (array.shape.empty()) return std::nullopt;
  const bool is_column = !array.texts || std::ssize(*array.texts) == array.shape[0];
  return is_column ? std::optional(array.shape[0]) : std::nullopt;
}

}  // namespace

at::Tensor datasets::load_npy(const std::string& path) { return tensor_of(read_npy(path), path); }

void datasets::save_npy(const std::string& path, const at::Tensor& array) {
  const at::Tensor stored = storable(array);
  write_npy(path, array_dtype(stored.scalar_type(), path), stored.sizes().vec(), bytes_of(stored));
}

Table datasets::load_npz(const std::string& path) {
  const ZipArchive archive = open_npz(path);
  Table table;
  for (const ZipMember& member : archive.members()) {
    const std::string name = array_name(member);
    if (name.empty()) continue;
    NpyArray array = array_in(archive, member);
    const std::optional<int64_t> rows = rows_of(array);
    if (!rows || (!table.names().empty() && *rows != table.rows())) {
      throw FileError(array_place(archive, member), "arrays of equally many rows",
                      "shape " + to_string(array.shape),
                      str("read it by load_npz(path, ", in_quotes(name), ")"));
    }
    if (array.texts) {
      table.add(name, std::move(*array.texts));
    } else {
      table.add(name, tensor_of(array, array_place(archive, member)));
    }
  }
  if (!table.names().empty()) return table;
  throw FileError(path, "an archive of arrays, as numpy.savez writes it", "none in it",
                  "name another file");
}

at::Tensor datasets::load_npz(const std::string& path, const std::string& name) {
  const ZipArchive archive = open_npz(path);
  if (const ZipMember* member = archive.find(name + ".npy")) {
    return tensor_of(array_in(archive, *member), array_place(archive, *member));
  }
  std::vector<std::string> names;
  for (const ZipMember& member : archive.members()) names.push_back(array_name(member));
  throw ConfigError(path, "the name of an array in it", in_quotes(name), suggestion(name, names));
}

datasets::NpzArrays::NpzArrays(const Table& table) {
  for (const std::string& name : table.names()) {
    if (table[name].is_text()) {
      throw ConfigError("save_npz", "columns of numbers", "texts in " + in_quotes(name),
                        "pop() the column first, or look its texts up");
    }
    arrays_.emplace_back(name, table[name].numbers());
  }
}

void datasets::save_npz(const std::string& path, const NpzArrays& given) {
  std::vector<at::Tensor> arrays;
  std::set<std::string> names;
  std::vector<ZipMember> members;
  std::vector<std::string> heads;
  uint64_t offset = 0;
  for (const auto& [name, array] : given.all()) {
    if (name.empty() || !array.defined() || !names.insert(name).second) {
      throw ConfigError("save_npz, " + path, "arrays have names of their own",
                        array.defined() ? in_quotes(name) : "no array for " + in_quotes(name),
                        "rename one, or leave it out");
    }
    arrays.push_back(storable(array));
    const std::string dtype = array_dtype(arrays.back().scalar_type(), path);
    const std::string head = npy_header(dtype, arrays.back().sizes().vec(), path);
    ZipMember member{.name = name + ".npy"};
    member.bytes = member.stored = head.size() + arrays.back().nbytes();
    uLong checksum = ::crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
    // crc32_z() of a null pointer would reset the checksum.
    if (arrays.back().nbytes() > 0) {
      checksum = ::crc32_z(checksum, static_cast<const Bytef*>(arrays.back().const_data_ptr()),
                           arrays.back().nbytes());
    }
    member.checksum = static_cast<uint32_t>(checksum);
    heads.push_back(zip_header(member) + head);
    member.offset = offset + heads.back().size() - head.size();
    offset += heads.back().size() + arrays.back().nbytes();
    members.push_back(std::move(member));
  }
  const std::string directory = zip_directory(members, offset);
  std::vector<std::span<const std::byte>> parts;
  for (size_t i = 0; i < arrays.size(); ++i) {
    parts.push_back(std::as_bytes(std::span(heads[i])));
    parts.push_back(bytes_of(arrays[i]));
  }
  parts.push_back(std::as_bytes(std::span(directory)));
  write_file_atomically(path, parts);
}

}  // namespace tessera
