#include <tessera/framework/io/hdf5/writing.hpp>

#include <string>
#include <vector>

#include <tessera/framework/io/hdf5/attributes.hpp>
#include <tessera/framework/io/hdf5/datatypes.hpp>
#include <tessera/framework/io/hdf5/handles.hpp>

namespace tessera::detail::hdf5 {
namespace {

void set_attributes(hid_t object, const Json& entry) {
  for (const auto& [name, value] : entry["attributes"].items()) set_attribute(object, name, value);
}

Json make_dataset(hid_t file, const Json& entry) {
  const std::string path = entry["path"].get<std::string>();
  const auto extents = entry["shape"].get<std::vector<hsize_t>>();
  const Handle type = type_of(entry["dtype"].get<std::string>());
  const Handle space{
      extents.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
      H5Sclose, path};
  const Handle properties{H5Pcreate(H5P_DATASET_CREATE), H5Pclose, path};
  checked(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY), path);
  checked(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER), path);
  checked(H5Pset_obj_track_times(properties, false), path);
  const Handle made{
      H5Dcreate2(file, path.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose,
      path};
  set_attributes(made, entry);
  const haddr_t offset = H5Dget_offset(made);
  return offset == HADDR_UNDEF ? Json() : Json(uint64_t{offset});
}

}  // namespace

Json lay_out(hid_t file, const Json& tree) {
  for (const Json& entry : tree["groups"]) {
    const std::string path = entry["path"].get<std::string>();
    const Handle group{path.empty()
                           ? H5Gopen2(file, "/", H5P_DEFAULT)
                           : H5Gcreate2(file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Gclose, path};
    set_attributes(group, entry);
  }
  Json offsets = Json::array();
  for (const Json& entry : tree["datasets"]) offsets.push_back(make_dataset(file, entry));
  return offsets;
}

}  // namespace tessera::detail::hdf5
