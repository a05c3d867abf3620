#include <tessera/framework/io/hdf5/file_driver.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <tessera/framework/io/hdf5/handles.hpp>

namespace tessera::detail::hdf5 {
namespace {

// Global, since the library passes no user argument to open().
FilePart* current_part = nullptr;

struct PartFile {
  H5FD_t common;  ///< the library's part, which must come first
  haddr_t end_of_addresses;
};

haddr_t& end_of(H5FD_t* file) { return reinterpret_cast<PartFile*>(file)->end_of_addresses; }

H5FD_t* open_part(const char*, unsigned flags, hid_t, haddr_t) {
  if ((flags & H5F_ACC_TRUNC) != 0) current_part->size = 0;
  return &(new PartFile())->common;
}

herr_t close_part(H5FD_t* file) {
  delete reinterpret_cast<PartFile*>(file);
  return 0;
}

int compare_parts(const H5FD_t* a, const H5FD_t* b) { return a < b ? -1 : a > b ? 1 : 0; }

herr_t query_part(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA;
  return 0;
}

haddr_t end_of_addresses(const H5FD_t* file, H5FD_mem_t) {
  return end_of(const_cast<H5FD_t*>(file));
}

herr_t set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  end_of(file) = address;
  return 0;
}

haddr_t end_of_file(const H5FD_t*, H5FD_mem_t) { return current_part->size; }

herr_t read_part(H5FD_t*, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  auto* out = static_cast<char*>(buffer);
  if (address > current_part->size) return -1;
  size_t available = std::min<uint64_t>(size, current_part->size - address);
  std::fill(out + available, out + size, 0);
  while (available > 0) {
    const auto at = static_cast<off_t>(current_part->base + address);
    const ssize_t count = ::pread(current_part->descriptor, out, available, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    out += count;
    address += static_cast<haddr_t>(count);
    available -= static_cast<size_t>(count);
  }
  return 0;
}

herr_t write_part(H5FD_t*, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  const auto* in = static_cast<const char*>(buffer);
  while (size > 0) {
    const auto at = static_cast<off_t>(current_part->base + address);
    const ssize_t count = ::pwrite(current_part->descriptor, in, size, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    in += count;
    address += static_cast<haddr_t>(count);
    size -= static_cast<size_t>(count);
    current_part->size = std::max<uint64_t>(current_part->size, address);
  }
  return 0;
}

/// Truncates to the last address; the parent process sets the file's actual length.
herr_t truncate_part(H5FD_t* file, hid_t, hbool_t) {
  current_part->size = end_of(file);
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
  driver.name = "part of an open file";
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.open = open_part;
  driver.close = close_part;
  driver.cmp = compare_parts;
  driver.query = query_part;
  driver.get_eoa = end_of_addresses;
  driver.set_eoa = set_end_of_addresses;
  driver.get_eof = end_of_file;
  driver.read = read_part;
  driver.write = write_part;
  driver.truncate = truncate_part;
  const H5FD_mem_t by_kind[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(by_kind), std::end(by_kind), std::begin(driver.fl_map));
  return driver;
}

}  // namespace

hid_t access_property_list(FilePart& part) {
  static const H5FD_class_t driver = driver_class();
  static const hid_t number = checked(H5FDregister(&driver), "no file driver");
  current_part = &part;
  const hid_t access = checked(H5Pcreate(H5P_FILE_ACCESS), "no access");
  checked(H5Pset_driver(access, number, nullptr), "no driver");
  checked(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "no degree of closing");
  return access;
}

}  // namespace tessera::detail::hdf5
