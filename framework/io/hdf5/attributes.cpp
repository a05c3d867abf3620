#include <tessera/framework/io/hdf5/attributes.hpp>

#include <cstring>
#include <vector>

#include <tessera/framework/io/hdf5/datatypes.hpp>
#include <tessera/framework/io/hdf5/handles.hpp>

namespace tessera::detail::hdf5 {
namespace {

constexpr hssize_t max_elements = 1 << 20;  // per attribute
constexpr size_t max_attributes = 10000;    // per object

Json with_count(std::vector<Json> list, bool scalar) {
  if (scalar) return list.empty() ? Json() : list.front();
  return Json(std::move(list));
}

std::vector<Json> read_texts(hid_t attribute, hid_t space, hid_t type, size_t count) {
  std::vector<Json> texts;
  if (count == 0) return texts;
  if (checked(H5Tis_variable_str(type), "no text") > 0) {
    const Handle memory_type{H5Tcopy(type), H5Tclose, "no text"};
    std::vector<char*> strings(count, nullptr);
    checked(H5Aread(attribute, memory_type, strings.data()), "an attribute cannot be read");
    for (const char* text : strings) texts.emplace_back(text ? text : "");
    checked(H5Dvlen_reclaim(memory_type, space, H5P_DEFAULT, strings.data()),
            "memory cannot be released");
    return texts;
  }
  const size_t size = H5Tget_size(type);
  if (size > (size_t{1} << 30) / (count + 1)) throw Refusal("an attribute is too long");
  std::vector<char> bytes(size * count);
  checked(H5Aread(attribute, type, bytes.data()), "an attribute cannot be read");
  for (size_t i = 0; i < count; ++i) {
    const char* text = bytes.data() + i * size;
    texts.emplace_back(std::string(text, ::strnlen(text, size)));
  }
  return texts;
}

template <class T>
std::vector<Json> read_numbers(hid_t attribute, hid_t type, size_t count) {
  std::vector<T> values(count);
  if (count > 0) checked(H5Aread(attribute, type, values.data()), "an attribute cannot be read");
  return {values.begin(), values.end()};
}

Json value_of(hid_t attribute) {
  const Handle space{H5Aget_space(attribute), H5Sclose, "an attribute has no extent"};
  const Handle type{H5Aget_type(attribute), H5Tclose, "an attribute has no type"};
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0 || count > max_elements) throw Refusal("an attribute has too many elements");
  const bool scalar = H5Sget_simple_extent_type(space) != H5S_SIMPLE;
  const auto elements = static_cast<size_t>(count);
  switch (H5Tget_class(type)) {
    case H5T_STRING:
      return with_count(read_texts(attribute, space, type, elements), scalar);
    case H5T_INTEGER:
      return with_count(read_numbers<int64_t>(attribute, H5T_NATIVE_INT64, elements), scalar);
    case H5T_FLOAT:
      return with_count(read_numbers<double>(attribute, H5T_NATIVE_DOUBLE, elements), scalar);
    default:
      return nullptr;
  }
}

}  // namespace

Json attributes_of(hid_t object) {
  Json all = Json::object();
  const auto add = [](hid_t owner, const char* name, const H5A_info_t*, void* into) -> herr_t {
    try {
      const Handle one{H5Aopen(owner, name, H5P_DEFAULT), H5Aclose, "an attribute does not open"};
      Json& known = *static_cast<Json*>(into);
      known[name] = value_of(one);
      return known.size() <= max_attributes ? 0 : -1;
    } catch (const std::exception&) {
      return -1;  // Exceptions must not pass through the C library.
    }
  };
  hsize_t position = 0;
  checked(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &position, add, &all),
          "its attributes cannot be read");
  return all;
}

Json attribute(hid_t object, const std::string& name) {
  if (checked(H5Aexists(object, name.c_str()), "its attributes cannot be read") == 0) return {};
  return value_of(
      Handle{H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "an attribute does not open"});
}

void set_attribute(hid_t object, const std::string& name, const Json& value) {
  const bool list = value.is_array();
  const hsize_t count = list ? value.size() : 1;
  const Handle space{list ? H5Screate_simple(1, &count, nullptr) : H5Screate(H5S_SCALAR), H5Sclose,
                     "no extent"};
  const bool number = value.is_number_integer();
  const Handle type = number ? type_of("I64") : text_type();
  const Handle made{H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                    H5Aclose, "an attribute cannot be made"};
  if (number) {
    const auto one = value.get<int64_t>();
    checked(H5Awrite(made, type, &one), "an attribute cannot be written");
    return;
  }
  std::vector<std::string> texts;
  if (list) {
    for (const Json& text : value) texts.push_back(text.get<std::string>());
  } else {
    texts.push_back(value.get<std::string>());
  }
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  if (count > 0) checked(H5Awrite(made, type, pointers.data()), "an attribute cannot be written");
}

}  // namespace tessera::detail::hdf5
