#include <tessera/framework/io/keras/keras_output.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/keras/keras_checksum.hpp>
#include <tessera/framework/io/keras/keras_tree.hpp>
#include <tessera/framework/io/keras/optimizer_variables.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

/// The HDF5 library writes the root group and its attributes first, before any data.
constexpr size_t max_root_bytes = size_t{1} << 16;

/// Builds an output, adding the parents of each group.
class OutputBuilder {
 public:
  void add(const std::string& path, const std::string& name,
           const std::vector<KerasValue>& values) {
    const std::string vars = path + "/vars";
    for (size_t end = 0; end != std::string::npos; end = vars.find('/', end + 1)) {
      const std::string above = vars.substr(0, end);
      if (known_.insert(above).second) output_.groups.push_back({above, Json::object()});
    }
    output_.groups.push_back({vars, {{"name", name}}});
    for (const KerasValue& value : values) {
      Hdf5Dataset dataset{.path = str(vars, "/", &value - values.data()),
                          .dtype = safetensors_dtype(value.type(), value.what),
                          .shape = value.shape()};
      if (value.type() == at::kBFloat16) dataset.attributes["dtype"] = "bfloat16";
      output_.datasets.push_back(std::move(dataset));
      output_.values.push_back(value);
    }
  }
  KerasOutput take() { return std::move(output_); }

 private:
  KerasOutput output_;
  std::set<std::string> known_;
};

std::span<const std::byte> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()),
          static_cast<size_t>(tensor.nbytes())};
}

/// Writes this process' part of a dataset.
void write_value(const FileDescriptor& file, uint64_t offset, const std::string& path, int rank,
                 const Hdf5Dataset& dataset, const KerasValue& value, Writers& writers) {
  if (!value.variable.defined()) {
    const at::Tensor number = at::scalar_tensor(value.number(), value.dtype);
    if (rank != 0) return;
    if (!write_all_at(file.get(), offset, bytes_of_tensor(number))) fail_write(path);
    return;
  }
  const uint64_t element = *safetensors_bits(dataset.dtype) / 8;
  const DTensor& tensor = value.variable.value();
  for (const Tile& tile : tiles_of(*tensor.sharding())) {
    const uint64_t size = static_cast<uint64_t>(numel(tile_shape(tile.intervals))) * element;
    if (writers.choose(tile.ranks, size) != rank) continue;
    const at::Tensor block = tensor.blocks()[static_cast<size_t>(tile.block)].cpu().contiguous();
    const std::span<const std::byte> bytes = bytes_of_tensor(block);
    const Rectangle area{tile_begin(tile.intervals), tile_end(tile.intervals)};
    for_each_run(area, full_rectangle(dataset.shape), element, [&](const CommonRun& run) {
      const auto run_bytes = bytes.subspan(run.source, run.bytes);
      if (!write_all_at(file.get(), offset + run.target, run_bytes)) fail_write(path);
    });
  }
}

/// Replaces the values of an adapted kernel by those with the adapter's product.
void merge_adapter(const Layer& layer, std::vector<KerasValue>& values) {
  for (const auto& [weight, merged] : dynamic_cast<const LoraLayer&>(layer).merged_weights()) {
    for (KerasValue& value : values) {
      if (!value.variable.is(weight)) continue;
      value.variable = Variable(weight.spec());
      value.variable.place(weight.placement());
      value.variable.assign(merged);
    }
  }
}

/// Replaces the attribute's value before the data was written, in the first group of the file.
void store_checksum(const std::string& file, const std::string& checksum, const std::string& path) {
  FileDescriptor opened = open_descriptor(file, O_RDWR | O_CLOEXEC);
  std::string head(max_root_bytes, '\0');
  const auto got =
      read_at(opened.get(), 0, std::as_writable_bytes(std::span(head.data(), head.size())));
  if (!got) fail_read(path);
  const size_t at = std::string_view(head).substr(0, *got).find(no_hdf5_checksum());
  const bool found = at != std::string_view::npos;
  if (!found || !write_all_at(opened.get(), at, std::as_bytes(std::span(checksum))) ||
      !sync_descriptor(opened.get()) || !opened.reset()) {
    fail_write(path);
  }
}

}  // namespace

KerasOutput keras_output(const Layer& model, bool with_optimizer) {
  OutputBuilder builder;
  for (const KerasGroup& group : keras_tree(model)) {
    std::vector<KerasValue> values;
    for (const Variable& variable : group.variables) {
      values.push_back({.what = variable.path(), .variable = variable});
    }
    if (group.layer && group.layer->has_lora()) merge_adapter(*group.layer, values);
    builder.add(group.path, group.name, values);
  }
  if (with_optimizer) {
    for (const OptimizerGroup& group : optimizer_groups(model)) {
      builder.add(group.path, group.name, group.values);
    }
  }
  return builder.take();
}

uint64_t write_output(const Mesh& mesh, KerasOutput& output, const std::string& path,
                      const std::string& temporary, uint64_t base) {
  raise_deferred_checks();
  FileDescriptor file;
  const std::string laid_out = broadcast_text(mesh, path, [&]() -> std::string {
    file = open_descriptor(temporary, O_RDWR | O_CLOEXEC);
    if (!file.valid()) fail_write(path);
    if (!is_first_rank(mesh)) return "";
    const uint64_t size = lay_out_hdf5(file, base, path, output.groups, output.datasets);
    if (::ftruncate(file.get(), static_cast<off_t>(base + size)) != 0) fail_write(path);
    Json offsets = Json::array();
    for (const Hdf5Dataset& dataset : output.datasets) offsets.push_back(*dataset.offset);
    return Json{{"size", size}, {"offsets", std::move(offsets)}}.dump();
  });
  const Json layout = Json::parse(laid_out);
  const int rank = mesh.is_local() ? 0 : communicator_of(mesh).rank();
  Writers writers(mesh);
  collectively(mesh, path, [&] {
    for (size_t i = 0; i < output.datasets.size(); ++i) {
      const uint64_t offset = base + layout["offsets"][i].get<uint64_t>();
      write_value(file, offset, path, rank, output.datasets[i], output.values[i], writers);
    }
    if (!sync_descriptor(file.get()) || !file.reset()) fail_write(path);
  });
  return layout["size"].get<uint64_t>();
}

void write_checked_output(const Mesh& mesh, KerasOutput& output, const std::string& path,
                          const std::string& temporary) {
  if (output.groups.empty()) output.groups.push_back({"", Json::object()});
  output.groups.front().attributes[hdf5_checksum_name] = no_hdf5_checksum();
  const uint64_t size = write_output(mesh, output, path, temporary, 0);
  std::optional<Hdf5File> written;
  collectively(mesh, path, [&] {
    auto file = std::make_shared<FileDescriptor>(open_descriptor(temporary, O_RDONLY | O_CLOEXEC));
    if (!file->valid()) fail_read(path);
    written.emplace(std::move(file), Hdf5Part{0, size}, path);
  });
  const std::string checksum = shared_hdf5_checksum(mesh, *written);
  collectively(mesh, path, [&] {
    if (is_first_rank(mesh)) store_checksum(temporary, checksum, path);
  });
}

}  // namespace tessera::detail
