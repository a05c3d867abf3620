#include "apps/python/arrays.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <ATen/ATen.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::python {

using namespace detail;

namespace {

using HostArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Code = nb::dlpack::dtype_code;

std::optional<at::ScalarType> dtype_of(const nb::dlpack::dtype& dtype) {
  const auto is = [&](Code code, int bits) {
    return dtype.code == static_cast<uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  if (is(Code::Float, 32)) return at::kFloat;
  if (is(Code::Float, 64)) return at::kDouble;
  if (is(Code::Float, 16)) return at::kHalf;
  if (is(Code::Bfloat, 16)) return at::kBFloat16;
  if (is(Code::Int, 64)) return at::kLong;
  if (is(Code::Int, 32)) return at::kInt;
  if (is(Code::Int, 16)) return at::kShort;
  if (is(Code::Int, 8)) return at::kChar;
  if (is(Code::UInt, 8)) return at::kByte;
  if (is(Code::UInt, 16)) return at::kUInt16;
  if (is(Code::UInt, 32)) return at::kUInt32;
  if (is(Code::UInt, 64)) return at::kUInt64;
  if (is(Code::Bool, 8)) return at::kBool;
  return std::nullopt;
}

/// Returns the array as a tensor; nothing for a dtype or strides that a tensor cannot have.
std::optional<at::Tensor> shared(const HostArray& array) {
  const auto dtype = dtype_of(array.dtype());
  if (!dtype) return std::nullopt;
  std::vector<int64_t> shape, strides;
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    shape.push_back(static_cast<int64_t>(array.shape(axis)));
    strides.push_back(array.stride(axis));
    if (strides.back() < 0) return std::nullopt;
  }
  auto* const owner = new HostArray(array);
  const auto release = [owner](void*) {
    // At the end of the process Python may be gone before the last tensor.
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire gil;
    delete owner;
  };
  return at::from_blob(const_cast<void*>(array.data()), shape, strides, release,
                       at::TensorOptions().dtype(*dtype));
}

std::optional<at::Tensor> exported(nb::handle array) {
  HostArray host;
  if (!nb::try_cast(nb::borrow(array), host)) return std::nullopt;
  return shared(host);
}

/// Few operations take unsigned integers beyond bytes.
at::Tensor in_known_dtype(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kUInt16) return tensor.to(at::kInt);
  const bool is_wide = tensor.scalar_type() == at::kUInt32 || tensor.scalar_type() == at::kUInt64;
  return is_wide ? tensor.to(at::kLong) : tensor;
}

[[noreturn]] void fail(nb::handle array, const std::string& argument, const std::string& what) {
  const std::string line =
      Error(argument, "an array of numbers, or several in a tuple, list or dict", what,
            nb::isinstance<nb::list>(array) || nb::isinstance<nb::tuple>(array)
                ? "pass numpy.array(...) of it"
                : "convert it to an array of NumPy")
          .what();
  throw nb::type_error(line.c_str());
}

}  // namespace

std::string type_name_of(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

bool is_array(nb::handle object) {
  if (nb::isinstance<nb::str>(object) || nb::isinstance<nb::bytes>(object)) return false;
  return nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__array__") ||
         PyObject_CheckBuffer(object.ptr()) != 0;
}

at::Tensor tensor_of(nb::handle array, const std::string& argument) {
  if (!is_array(array)) fail(array, argument, type_name_of(array));
  if (const auto tensor = exported(array)) return in_known_dtype(*tensor);
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object copied = numpy.attr("asarray")(array);
  const nb::object dtype = copied.attr("dtype");
  const auto name = nb::cast<std::string>(dtype.attr("name"));
  if (name == "bfloat16") {
    const auto bits = exported(numpy.attr("ascontiguousarray")(copied.attr("view")("uint16")));
    return bits->view(at::kBFloat16);
  }
  const auto kind = nb::cast<std::string>(dtype.attr("kind"));
  if (std::string("biuf").find(kind) == std::string::npos) {
    fail(array, argument, str("an array of dtype ", name));
  }
  // In the byte order of the processor, and without negative strides.
  const auto tensor = exported(
      numpy.attr("ascontiguousarray")(copied, nb::arg("dtype") = dtype.attr("newbyteorder")("=")));
  if (!tensor) fail(array, argument, str("an array of dtype ", name));
  return in_known_dtype(*tensor);
}

nb::object array_of(const at::Tensor& tensor) {
  at::Tensor host = tensor.detach().cpu().contiguous();
  if (host.scalar_type() == at::kBFloat16) host = host.to(at::kFloat);
  Code code = Code::Int;
  if (host.is_floating_point()) code = Code::Float;
  if (host.scalar_type() == at::kBool) code = Code::Bool;
  if (host.scalar_type() == at::kByte) code = Code::UInt;
  const std::vector<size_t> shape(host.sizes().begin(), host.sizes().end());
  auto* const owner = new at::Tensor(host);
  const nb::capsule capsule(owner,
                            [](void* kept) noexcept { delete static_cast<at::Tensor*>(kept); });
  const nb::dlpack::dtype dtype{static_cast<uint8_t>(code),
                                static_cast<uint8_t>(host.element_size() * 8), 1};
  return nb::cast(
      nb::ndarray<nb::numpy>(host.data_ptr(), shape.size(), shape.data(), capsule, nullptr, dtype));
}

}  // namespace tessera::python
