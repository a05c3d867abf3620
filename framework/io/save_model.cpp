#include <zlib.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <span>

#include <fcntl.h>
#include <unistd.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/replacing_file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/framework/io/internal/model_folder.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/keras/asset_files.hpp>
#include <tessera/framework/io/keras/compile_config.hpp>
#include <tessera/framework/io/keras/keras_checksum.hpp>
#include <tessera/framework/io/keras/keras_output.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/internal/unsaved_layer.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

/// The Keras version whose format is written.
constexpr const char* keras_version = "3.15.1";

std::string metadata_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm date{};
  ::localtime_r(&now, &date);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d@%H:%M:%S", &date);
  return Json{{"keras_version", keras_version}, {"date_saved", text}}.dump();
}

std::string config_text(const Model& model, const std::string& path) {
  check_saved(model);
  Json config = serialize_layer(model);
  Json shape;
  const Shapes inputs = model.input_shapes();
  if (inputs.size() == 1) {
    shape = Json::array();
    for (const int64_t extent : inputs[0]) {
      shape.push_back(extent < 0 ? Json() : Json(extent));
    }
  }
  config["build_config"] = {{"input_shape", is_functional(model) ? Json() : shape}};
  const Json compiled = compile_config(model, path);
  if (!compiled.is_null()) config["compile_config"] = compiled;
  std::string text = config.dump();
  for (const OwnActivation& own : own_activations) {
    const std::string_view name = own.name;
    if (text.find(name) == std::string::npos) continue;
    warn_once(mesh_of(model.weights()),
              str(path, ": to read the model, Keras 3 needs ", own.function,
                  ", registered by keras.saving.register_keras_serializable(\"tessera\", ",
                  in_quotes(std::string(name.substr(name.find('>') + 1))), ")"));
  }
  return text;
}

ZipMember member_of(const std::string& name, const std::string& bytes, uint64_t end) {
  ZipMember member{.name = name, .stored = bytes.size(), .bytes = bytes.size()};
  member.checksum = static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  member.offset = end + zip_header(member).size();
  return member;
}

void append(const ReplacingFile& file, const std::string& bytes, const std::string& path) {
  if (!write_all(file.descriptor(), std::as_bytes(std::span(bytes)))) fail_write(path);
}

/// Returns the CRC-32 of a member of the file `temporary`. Collective.
uint32_t checksum_of(const Mesh& mesh, const std::string& temporary, const ZipMember& member,
                     const std::string& path) {
  FileDescriptor file;
  collectively(mesh, path, [&] {
    file = open_descriptor(temporary, O_RDONLY | O_CLOEXEC);
    if (!file.valid()) fail_read(path);
  });
  return shared_crc32(mesh, file, member.offset, member.offset + member.bytes, path);
}

void save_archive(const Model& model, const Mesh& mesh, KerasOutput& output,
                  const std::string& path) {
  std::optional<ReplacingFile> file;
  std::vector<ZipMember> members;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    const uint64_t end = members.empty() ? 0 : members.back().offset + members.back().bytes;
    members.push_back(member_of(name, bytes, end));
    append(*file, zip_header(members.back()) + bytes, path);
  };
  ZipMember weights{.name = "model.weights.h5"};
  const std::string target_text = broadcast_text(mesh, path, [&]() -> std::string {
    if (!is_first_rank(mesh)) return "";
    file.emplace(path);
    add("metadata.json", metadata_text());
    add("config.json", config_text(model, path));
    for (const auto& [name, bytes] : asset_files(model, path)) add(name, bytes);
    // The weights' exact size is not known yet; a bound decides about zip64.
    uint64_t bytes = 0;
    for (const Hdf5Dataset& dataset : output.datasets) bytes += bytes_of(dataset, path);
    weights.wide = bytes >= uint64_t{3} << 30;
    weights.offset = members.back().offset + members.back().bytes + zip_header(weights).size();
    return Json{{"temporary", file->temporary_path()}, {"offset", weights.offset}}.dump();
  });
  const Json target = Json::parse(target_text);
  const auto temporary = target["temporary"].get<std::string>();
  weights.offset = target["offset"].get<uint64_t>();
  weights.bytes = write_output(mesh, output, path, temporary, weights.offset);
  weights.checksum = checksum_of(mesh, temporary, weights, path);
  collectively(mesh, path, [&] {
    if (!file) return;
    const std::string header = zip_header(weights);
    append(*file, header, path);
    if (::lseek(file->descriptor(), 0, SEEK_END) < 0) fail_write(path);
    members.push_back(weights);
    append(*file, zip_directory(members, weights.offset + weights.bytes), path);
    file->commit();
  });
}

/// Writes a new file into the temporary folder that will become `path`, which errors name.
void write_new(const std::string& file, const std::string& bytes, const std::string& path) {
  const FileDescriptor descriptor = open_descriptor(file, O_WRONLY | O_CREAT | O_EXCL, 0666);
  const bool good = descriptor.valid() &&
                    write_all(descriptor.get(), std::as_bytes(std::span(bytes))) &&
                    sync_descriptor(descriptor.get());
  if (!good) fail_write(path);
}

void save_folder(const Model& model, const Mesh& mesh, KerasOutput& output,
                 const std::string& path) {
  std::optional<ModelFolder> folder;
  const std::string temporary_folder = broadcast_text(mesh, path, [&]() -> std::string {
    if (!is_first_rank(mesh)) return "";
    folder.emplace(path);
    const std::string& folder_path = folder->temporary_path();
    write_new(path_in(folder_path, "metadata.json"), metadata_text(), path);
    write_new(path_in(folder_path, "config.json"), config_text(model, path), path);
    for (const auto& [name, bytes] : asset_files(model, path)) {
      const std::string file = path_in(folder_path, name);
      if (!make_folders(parent_of(file))) fail_write(path);
      write_new(file, bytes, path);
    }
    write_new(path_in(folder_path, "model.weights.h5"), "", path);
    return folder_path;
  });
  write_checked_output(mesh, output, path, path_in(temporary_folder, "model.weights.h5"));
  collectively(mesh, path, [&] {
    if (folder) folder->commit();
  });
}

}  // namespace

void Model::save(const std::string& path, const SaveOptions& options) const {
  if (!built()) {
    throw StateError("save", "the model is built", "a model whose weights are not known yet",
                     "call build() with an input shape first");
  }
  const Mesh mesh = mesh_of(weights());
  collectively(mesh, path, [&] {
    if (!path.ends_with(".keras") && options.zipped) {
      throw ConfigError(path, "the path of a model ends in \".keras\"", in_quotes(path),
                        "add it, or pass zipped = false for a folder");
    }
    if (options.overwrite || !is_first_rank(mesh) || !exists(path)) return;
    throw FileError(path, "the path must not exist with overwrite = false", "a file or folder",
                    "pass another path, or overwrite = true");
  });
  KerasOutput output = keras_output(*this, options.include_optimizer);
  if (options.zipped) {
    save_archive(*this, mesh, output, path);
  } else {
    save_folder(*this, mesh, output, path);
  }
}

}  // namespace tessera
