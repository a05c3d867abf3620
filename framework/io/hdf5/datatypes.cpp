#include <tessera/framework/io/hdf5/datatypes.hpp>

#include <cstdint>

#include <tessera/framework/io/hdf5/attributes.hpp>

namespace tessera::detail::hdf5 {
namespace {

Handle copied(hid_t type) { return {H5Tcopy(type), H5Tclose, "no type"}; }

/// Returns IEEE float16, which the library does not predefine.
Handle float16_type() {
  Handle type = copied(H5T_IEEE_F32LE);
  checked(H5Tset_fields(type, 15, 10, 5, 0, 10), "no float16 type");
  checked(H5Tset_size(type, 2), "no float16 type");
  checked(H5Tset_ebias(type, 15), "no float16 type");
  return type;
}

/// Returns bool as h5py writes it.
Handle bool_type() {
  Handle type{H5Tenum_create(H5T_STD_I8LE), H5Tclose, "no bool type"};
  int8_t value = 0;
  checked(H5Tenum_insert(type, "FALSE", &value), "no bool type");
  value = 1;
  checked(H5Tenum_insert(type, "TRUE", &value), "no bool type");
  return type;
}

Handle opaque_two_bytes() {
  Handle type{H5Tcreate(H5T_OPAQUE, 2), H5Tclose, "no opaque type"};
  checked(H5Tset_tag(type, ""), "no opaque type");
  return type;
}

struct NamedType {
  const char* dtype;
  hid_t type;
  hid_t big_endian;  ///< big-endian version
};

const NamedType* named_types(size_t& count) {
  static const NamedType list[] = {
      {"F64", H5T_IEEE_F64LE, H5T_IEEE_F64BE}, {"F32", H5T_IEEE_F32LE, H5T_IEEE_F32BE},
      {"I64", H5T_STD_I64LE, H5T_STD_I64BE},   {"I32", H5T_STD_I32LE, H5T_STD_I32BE},
      {"I16", H5T_STD_I16LE, H5T_STD_I16BE},   {"I8", H5T_STD_I8LE, H5T_STD_I8BE},
      {"U64", H5T_STD_U64LE, H5T_STD_U64BE},   {"U32", H5T_STD_U32LE, H5T_STD_U32BE},
      {"U16", H5T_STD_U16LE, H5T_STD_U16BE},   {"U8", H5T_STD_U8LE, H5T_STD_U8BE}};
  count = std::size(list);
  return list;
}

bool same(hid_t a, hid_t b) { return checked(H5Tequal(a, b), "types do not compare") > 0; }

}  // namespace

ElementType element_type_of(hid_t dataset, hid_t type) {
  size_t count = 0;
  const NamedType* list = named_types(count);
  for (size_t i = 0; i < count; ++i) {
    if (same(type, list[i].type)) return {list[i].dtype, true};
    if (same(type, list[i].big_endian)) return {list[i].dtype, list[i].type == list[i].big_endian};
  }
  const Handle float16 = float16_type();
  if (same(type, float16)) return {"F16", true};
  const H5T_class_t kind = H5Tget_class(type);
  // Big-endian float16; bfloat16 has another bias.
  const bool is_half = kind == H5T_FLOAT && H5Tget_size(type) == 2 && H5Tget_ebias(type) == 15;
  if (is_half) return {"F16", false};
  if (kind == H5T_ENUM && same(type, bool_type())) return {"BOOL", true};
  if (kind == H5T_OPAQUE && H5Tget_size(type) == 2 &&
      attribute(dataset, "dtype") == Json("bfloat16")) {
    return {"BF16", true};
  }
  return {"", false};
}

Handle type_of(const std::string& dtype) {
  size_t count = 0;
  const NamedType* list = named_types(count);
  for (size_t i = 0; i < count; ++i) {
    if (dtype == list[i].dtype) return copied(list[i].type);
  }
  if (dtype == "F16") return float16_type();
  if (dtype == "BOOL") return bool_type();
  if (dtype == "BF16") return opaque_two_bytes();
  throw Refusal("no type for \"" + dtype + "\"");
}

Handle text_type() {
  Handle type = copied(H5T_C_S1);
  checked(H5Tset_size(type, H5T_VARIABLE), "no text");
  checked(H5Tset_cset(type, H5T_CSET_UTF8), "no text");
  return type;
}

}  // namespace tessera::detail::hdf5
