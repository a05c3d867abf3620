#include <tessera/framework/io/format/hdf5_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {
namespace {

[[noreturn]] void fail_hdf5(const std::string& path, const std::string& expected,
                            const std::string& received) {
  throw FileError(path, expected, received, "save the model again with Keras or Tessera");
}

std::shared_ptr<const FileDescriptor> open_hdf5(const std::string& path) {
  auto opened = std::make_shared<FileDescriptor>(open_descriptor(path, O_RDONLY | O_NONBLOCK));
  if (!opened->valid()) fail_read(path);
  return opened;
}

uint64_t size_of_file(const FileDescriptor& file, const std::string& path) {
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) fail_read(path);
  if (!S_ISREG(about.st_mode)) fail_hdf5(path, "an HDF5 file", "not a regular file");
  return static_cast<uint64_t>(about.st_size);
}

}  // namespace

uint64_t bytes_of(const Hdf5Dataset& dataset, const std::string& path) {
  const auto fail = [&] {
    fail_hdf5(path, "datasets of tensors",
              str(in_quotes(dataset.path), " of shape ", to_string(dataset.shape)));
  };
  const std::optional<uint64_t> bits = safetensors_bits(dataset.dtype);
  if (!bits) {
    fail_hdf5(path, str(in_quotes(dataset.path), " is a tensor"), "a dataset of another type");
  }
  std::optional<uint64_t> bytes = *bits / 8;
  for (const int64_t extent : dataset.shape) {
    if (extent < 0) fail();
    bytes = checked_mul(*bytes, static_cast<uint64_t>(extent));
    if (!bytes) fail();
  }
  return *bytes;
}

Hdf5File::Hdf5File(const std::string& path) : path_(path), file_(open_hdf5(path)) {
  part_.size = size_of_file(*file_, path);
  program_ = std::make_unique<Hdf5Program>(Hdf5Program::Work::read, *file_, part_, path_);
  read_listing(program_->answer());
}

Hdf5File::Hdf5File(std::shared_ptr<const FileDescriptor> file, const Hdf5Part& part,
                   std::string path)
    : path_(std::move(path)), file_(std::move(file)), part_(part) {
  program_ = std::make_unique<Hdf5Program>(Hdf5Program::Work::read, *file_, part_, path_);
  read_listing(program_->answer());
}

Hdf5File::~Hdf5File() = default;

/// The listing is checked, since the helper program has parsed an untrusted file.
void Hdf5File::read_listing(const Json& listing) {
  try {
    for (const Json& group : listing.at("groups")) {
      groups_.push_back({group.at("path").get<std::string>(), group.at("attributes")});
    }
    for (const Json& entry : listing.at("datasets")) {
      Hdf5Dataset& dataset = datasets_.emplace_back();
      dataset.path = entry.at("path").get<std::string>();
      dataset.dtype = entry.at("dtype").get<std::string>();
      for (const Json& extent : entry.at("shape")) {
        const auto wide = extent.get<uint64_t>();
        if (wide > uint64_t{1} << 62) {
          fail_hdf5(path_, "extents of at most 2^62", std::to_string(wide));
        }
        dataset.shape.push_back(static_cast<int64_t>(wide));
      }
      dataset.attributes = entry.at("attributes");
      if (!entry.at("offset").is_null()) dataset.offset = entry.at("offset").get<uint64_t>();
    }
  } catch (const nlohmann::json::exception&) {
    fail_hdf5(path_, "a listing of an HDF5 file", "an invalid one");
  }
  for (const Hdf5Dataset& dataset : datasets_) {
    if (dataset.dtype.empty() || !dataset.offset) continue;
    const std::optional<uint64_t> end = checked_add(*dataset.offset, bytes_of(dataset, path_));
    if (end && *end <= part_.size) continue;
    fail_hdf5(path_, str(in_quotes(dataset.path), " ends within the file's ", part_.size, " bytes"),
              "it ends later");
  }
  for (size_t i = 0; i < groups_.size(); ++i) group_indices_.emplace(groups_[i].path, i);
  for (size_t i = 0; i < datasets_.size(); ++i) dataset_indices_.emplace(datasets_[i].path, i);
  const bool packed = std::any_of(datasets_.begin(), datasets_.end(), [](const Hdf5Dataset& one) {
    return !one.dtype.empty() && !one.offset;
  });
  if (!packed) program_.reset();
}

const Hdf5Group* Hdf5File::find_group(std::string_view path) const {
  const auto found = group_indices_.find(path);
  return found == group_indices_.end() ? nullptr : &groups_[found->second];
}

const Hdf5Dataset* Hdf5File::find(std::string_view path) const {
  const auto found = dataset_indices_.find(path);
  return found == dataset_indices_.end() ? nullptr : &datasets_[found->second];
}

void Hdf5File::read(const Hdf5Dataset& dataset, const Rectangle& area,
                    std::span<std::byte> out) const {
  bytes_of(dataset, path_);
  if (out.empty()) return;
  if (!dataset.offset) return read_by_program(dataset, area, out);
  const uint64_t element = *safetensors_bits(dataset.dtype) / 8;
  for_each_run(full_rectangle(dataset.shape), area, element, [&](const CommonRun& run) {
    read_bytes(*dataset.offset + run.source, out.subspan(run.target, run.bytes));
    bytes_read_ += run.bytes;
  });
}

void Hdf5File::read_chunks(const Hdf5Dataset& dataset, uint64_t chunk_bytes, uint64_t begin,
                           uint64_t end,
                           const std::function<void(std::span<const std::byte>)>& take) const {
  const uint64_t bytes = bytes_of(dataset, path_);
  std::vector<std::byte> chunk;
  for (uint64_t i = begin; dataset.offset && i < end; ++i) {
    chunk.resize(std::min(chunk_bytes, bytes - i * chunk_bytes));
    read_bytes(*dataset.offset + i * chunk_bytes, chunk);
    take(chunk);
  }
  if (dataset.offset || begin == end) return;
  const std::lock_guard lock(mutex_);
  program_->ask(std::to_string(&dataset - datasets_.data()));
  uint64_t at = 0;
  program_->take_data(bytes, [&](std::span<const std::byte> data) {
    while (!data.empty()) {
      const uint64_t number = at / chunk_bytes;
      const auto part = data.first(std::min(chunk_bytes - at % chunk_bytes, data.size()));
      if (number >= begin && number < end) chunk.insert(chunk.end(), part.begin(), part.end());
      at += part.size();
      data = data.subspan(part.size());
      if (chunk.empty() || (at % chunk_bytes != 0 && at != bytes)) continue;
      take(chunk);
      chunk.clear();
    }
  });
}

void Hdf5File::read_bytes(uint64_t offset, std::span<std::byte> out) const {
  const std::optional<size_t> got = read_at(file_->get(), part_.base + offset, out);
  if (!got) fail_read(path_);
  if (*got < out.size()) {
    fail_hdf5(path_, "a file of the size that it had when it was opened", "a shorter file");
  }
}

/// Receives the complete dataset and keeps the rectangle.
void Hdf5File::read_by_program(const Hdf5Dataset& dataset, const Rectangle& area,
                               std::span<std::byte> out) const {
  const std::lock_guard lock(mutex_);
  const uint64_t element = *safetensors_bits(dataset.dtype) / 8;
  std::vector<CommonRun> runs;
  for_each_run(full_rectangle(dataset.shape), area, element,
               [&](const CommonRun& run) { runs.push_back(run); });
  program_->ask(std::to_string(&dataset - datasets_.data()));
  size_t next = 0;
  uint64_t at = 0;
  program_->take_data(bytes_of(dataset, path_), [&](std::span<const std::byte> chunk) {
    for (; next < runs.size(); ++next) {
      const CommonRun& run = runs[next];
      const uint64_t begin = std::max(run.source, at);
      const uint64_t end = std::min(run.source + run.bytes, at + chunk.size());
      if (begin < end) {
        std::memcpy(out.data() + run.target + (begin - run.source), chunk.data() + (begin - at),
                    end - begin);
      }
      if (run.source + run.bytes > at + chunk.size()) break;
    }
    at += chunk.size();
    bytes_read_ += chunk.size();
  });
}

uint64_t lay_out_hdf5(const FileDescriptor& file, uint64_t base, const std::string& path,
                      const std::vector<Hdf5Group>& groups, std::vector<Hdf5Dataset>& datasets) {
  Json tree{{"groups", Json::array()}, {"datasets", Json::array()}};
  for (const Hdf5Group& group : groups) {
    tree["groups"].push_back({{"path", group.path}, {"attributes", group.attributes}});
  }
  for (const Hdf5Dataset& dataset : datasets) {
    tree["datasets"].push_back({{"path", dataset.path},
                                {"dtype", dataset.dtype},
                                {"shape", dataset.shape},
                                {"attributes", dataset.attributes}});
  }
  Hdf5Program program(Hdf5Program::Work::write, file, {base, 0}, path);
  program.ask(tree.dump());
  const Json answer = program.answer();
  for (size_t i = 0; i < datasets.size(); ++i) {
    const Json& offset = answer.at("offsets").at(i);
    datasets[i].offset = offset.is_null() ? 0 : offset.get<uint64_t>();
  }
  return answer.at("size").get<uint64_t>();
}

}  // namespace tessera::detail
