#include <tessera/datasets/read_array.hpp>

#include <zlib.h>

#include <cstring>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/datasets/files/npy.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr uint64_t max_array_bytes = uint64_t{1} << 36;

at::Tensor tensor_of(const NpyArray& array) {
  const c10::InferenceMode inference;
  const at::Tensor tensor =
      at::empty(array.shape, at::TensorOptions().dtype(*safetensors_scalar_type(array.dtype)));
  if (!array.data.empty()) {
    std::memcpy(tensor.mutable_data_ptr(), array.data.data(), array.data.size());
  }
  return tensor;
}

/// Converts a tensor to contiguous host memory of a dtype that NumPy has.
at::Tensor storable(const at::Tensor& array) {
  const c10::InferenceMode inference;
  // NumPy has no bfloat16.
  const at::Tensor known = array.scalar_type() == at::kBFloat16 ? array.to(at::kFloat) : array;
  return known.cpu().contiguous();
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

at::Tensor array_in(const ZipArchive& archive, const ZipMember& member) {
  const std::string where = archive.path() + ", " + one_line(member.name);
  return tensor_of(parse_npy(archive.read(member, max_array_bytes), where));
}

}  // namespace

at::Tensor datasets::load_npy(const std::string& path) { return tensor_of(read_npy(path)); }

void datasets::save_npy(const std::string& path, const at::Tensor& array) {
  const at::Tensor stored = storable(array);
  write_npy(path, safetensors_dtype(stored.scalar_type(), path), stored.sizes().vec(),
            bytes_of(stored));
}

Table datasets::load_npz(const std::string& path) {
  const ZipArchive archive = open_npz(path);
  Table table;
  for (const ZipMember& member : archive.members()) {
    const std::string name = array_name(member);
    if (name.empty()) continue;
    const at::Tensor array = array_in(archive, member);
    if (array.dim() == 0 || (!table.names().empty() && array.size(0) != table.rows())) {
      throw FileError(path + ", " + one_line(member.name), "arrays of equally many rows",
                      "shape " + to_string(array.sizes().vec()),
                      str("read it by load_npz(path, ", in_quotes(name), ")"));
    }
    table.add(name, array);
  }
  if (!table.names().empty()) return table;
  throw FileError(path, "an archive of arrays, as numpy.savez writes it", "none in it",
                  "name another file");
}

at::Tensor datasets::load_npz(const std::string& path, const std::string& name) {
  const ZipArchive archive = open_npz(path);
  if (const ZipMember* member = archive.find(name + ".npy")) return array_in(archive, *member);
  std::vector<std::string> names;
  for (const ZipMember& member : archive.members()) names.push_back(array_name(member));
  throw ConfigError(path, "the name of an array in it", in_quotes(name), suggestion(name, names));
}

void datasets::save_npz(const std::string& path, const Table& table) {
  std::vector<at::Tensor> arrays;
  std::vector<ZipMember> members;
  std::vector<std::string> heads;
  uint64_t offset = 0;
  for (const std::string& name : table.names()) {
    if (table[name].is_text()) {
      throw ConfigError("save_npz, " + path, "columns of numbers", "texts in " + in_quotes(name),
                        "pop() the column first, or look its texts up");
    }
    arrays.push_back(storable(table[name].numbers()));
    const std::string dtype = safetensors_dtype(arrays.back().scalar_type(), path);
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
