#include <tessera/framework/io/hdf5/reading.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <tessera/framework/io/hdf5/attributes.hpp>
#include <tessera/framework/io/hdf5/datatypes.hpp>
#include <tessera/framework/io/hdf5/handles.hpp>
#include <tessera/framework/io/hdf5/messages.hpp>

namespace tessera::detail::hdf5 {
namespace {

constexpr size_t max_objects = 1000000;
constexpr int max_levels = 64;
/// Size of a message of data, unless a row is longer.
constexpr uint64_t max_message_bytes = uint64_t{4} << 20;
/// A larger dataset is refused if it also has more than 1000 times its stored bytes.
constexpr uint64_t max_unstored_bytes = uint64_t{4} << 30;
/// Maximum size of a file's listing relative to the file: objects may share texts.
constexpr uint64_t max_listing_factor = 64;

Handle open_dataset(hid_t file, const std::string& path) {
  return {H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose, path};
}

/// Returns the rows of a dataset's chunk; 1 without chunks.
hsize_t rows_of_chunk(hid_t properties) {
  if (H5Pget_layout(properties) != H5D_CHUNKED) return 1;
  hsize_t extents[H5S_MAX_RANK] = {1};
  checked(H5Pget_chunk(properties, H5S_MAX_RANK, extents), "no chunk");
  return extents[0];
}

class Lister {
 public:
  explicit Lister(hid_t file) : file_(file) {}

  Json list() {
    add_group("", 0);
    return {{"groups", std::move(groups_)}, {"datasets", std::move(datasets_)}};
  }

 private:
  void add_group(const std::string& path, int level) {
    if (level > max_levels) throw Refusal(path + ": groups nest deeper than 64");
    const Handle group{H5Gopen2(file_, path.empty() ? "/" : path.c_str(), H5P_DEFAULT), H5Gclose,
                       path};
    H5O_info_t about;
    checked(H5Oget_info2(group, &about, H5O_INFO_BASIC), path);
    if (!seen_.insert(about.addr).second) throw Refusal(path + ": a group with two paths");
    groups_.push_back({{"path", path}, {"attributes", attributes_of(group)}});
    std::vector<std::string> names;
    const auto keep = [](hid_t, const char* name, const H5L_info_t* link, void* into) -> herr_t {
      auto& list = *static_cast<std::vector<std::string>*>(into);
      // Exceptions must not pass through the C library.
      if (link->type != H5L_TYPE_HARD || list.size() >= max_objects) return -1;
      list.emplace_back(name);
      return 0;
    };
    hsize_t position = 0;
    checked(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, keep, &names),
            path + "/: links to other places or files, or what cannot be read");
    for (const std::string& name : names) {
      if (++objects_ > max_objects) throw Refusal("more than a million objects");
      // The library would take the name for a path and follow it.
      if (name.find('/') != std::string::npos) {
        throw Refusal(path + "/" + name + ": a name with a \"/\"");
      }
      add_object(group, name, path + "/" + name, level);
    }
  }

  void add_object(hid_t group, const std::string& name, const std::string& path, int level) {
    const Handle object{H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, path};
    switch (H5Iget_type(object)) {
      case H5I_GROUP:
        return add_group(path, level + 1);
      case H5I_DATASET:
        return add_dataset(object, path);
      default:
        throw Refusal(path + ": neither a group nor a dataset");
    }
  }

  void add_dataset(hid_t dataset, const std::string& path) {
    const Handle type{H5Dget_type(dataset), H5Tclose, path};
    const Handle properties{H5Dget_create_plist(dataset), H5Pclose, path};
    const H5D_layout_t layout = H5Pget_layout(properties);
    // A virtual dataset's extent may depend on other files.
    if (layout == H5D_VIRTUAL) throw Refusal(path + ": its data are in other datasets");
    const bool elsewhere = layout == H5D_CONTIGUOUS && H5Pget_external_count(properties) > 0;
    if (elsewhere) throw Refusal(path + ": its data are in other files");
    const Handle space{H5Dget_space(dataset), H5Sclose, path};
    hsize_t extents[H5S_MAX_RANK];
    const int rank = checked(H5Sget_simple_extent_dims(space, extents, nullptr), path);
    const bool none = H5Sget_simple_extent_type(space) == H5S_NULL;
    const ElementType element_type = none ? ElementType{"", false} : element_type_of(dataset, type);
    const haddr_t offset = H5Dget_offset(dataset);
    const bool direct = layout == H5D_CONTIGUOUS && element_type.is_native && offset != HADDR_UNDEF;
    const Json shape(std::vector<uint64_t>(extents, extents + rank));
    datasets_.push_back({{"path", path},
                         {"dtype", element_type.dtype},
                         {"shape", shape},
                         {"offset", direct ? Json(uint64_t{offset}) : Json()},
                         {"attributes", attributes_of(dataset)}});
  }

  hid_t file_;
  std::set<haddr_t> seen_;
  size_t objects_ = 0;
  Json groups_ = Json::array();
  Json datasets_ = Json::array();
};

/// Sends a dataset's data, several rows at a time.
void send_data(hid_t file, const Json& entry) {
  const std::string path = entry["path"].get<std::string>();
  const Handle dataset = open_dataset(file, path);
  const Handle type = type_of(entry["dtype"].get<std::string>());
  const Handle space{H5Dget_space(dataset), H5Sclose, path};
  const Handle properties{H5Dget_create_plist(dataset), H5Pclose, path};
  auto extents = entry["shape"].get<std::vector<hsize_t>>();
  const bool scalar = extents.empty();
  if (scalar) extents = {1};
  uint64_t row_bytes = H5Tget_size(type), bytes = 0;
  for (size_t axis = 1; axis < extents.size(); ++axis) {
    if (__builtin_mul_overflow(row_bytes, extents[axis], &row_bytes)) {
      bytes = max_unstored_bytes + 1;
    }
  }
  if (bytes > 0 || __builtin_mul_overflow(row_bytes, extents[0], &bytes)) {
    throw Refusal(path + ": the number of its elements overflows");
  }
  if (bytes == 0) return;
  if (bytes > max_unstored_bytes && bytes / 1000 > H5Dget_storage_size(dataset)) {
    throw Refusal(path + ": more than a thousand times its stored bytes");
  }
  const hsize_t chunk = rows_of_chunk(properties);
  const hsize_t rows_per_message =
      std::max<hsize_t>(1, max_message_bytes / row_bytes / chunk) * chunk;
  std::vector<char> buffer;
  for (hsize_t row = 0; row < extents[0]; row += rows_per_message) {
    std::vector<hsize_t> begin(extents.size(), 0), count = extents;
    begin[0] = row;
    count[0] = std::min(rows_per_message, extents[0] - row);
    buffer.resize(count[0] * row_bytes);
    const int rank = static_cast<int>(extents.size());
    const Handle memory_space{
        scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, count.data(), nullptr), H5Sclose,
        path};
    if (!scalar) {
      checked(
          H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr),
          path);
    }
    checked(H5Dread(dataset, type, memory_space, space, H5P_DEFAULT, buffer.data()), path);
    send('D', buffer.data(), buffer.size());
  }
}

}  // namespace

void serve_file(hid_t file) {
  const Json listing = Lister(file).list();
  // Names may not be valid UTF-8.
  const std::string text = listing.dump(-1, ' ', false, Json::error_handler_t::replace);
  hsize_t bytes = 0;
  checked(H5Fget_filesize(file, &bytes), "its size is unknown");
  if (text.size() / max_listing_factor > bytes) {
    throw Refusal("names and attributes longer than the file");
  }
  send('J', text);
  std::string line;
  while (receive(line)) send_data(file, listing["datasets"].at(std::stoul(line)));
}

}  // namespace tessera::detail::hdf5
