#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include <nanobind/nanobind.h>

namespace tessera::python {

namespace nb = nanobind;

/// Returns the name of an object's class, for errors.
std::string type_name_of(nb::handle object);

/// Whether an object is an array: of NumPy, or anything that DLPack, NumPy or the buffer protocol
/// reads.
bool is_array(nb::handle object);

/// Returns an array of the host as a tensor that shares its memory, if PyTorch has its dtype and
/// strides, and a copy otherwise. Throws TypeError, naming the argument, for anything else.
at::Tensor tensor_of(nb::handle array, const std::string& argument);

/// Returns a tensor as an array of NumPy, without a copy if it is dense and on the host; bfloat16,
/// which NumPy lacks, becomes float32.
nb::object array_of(const at::Tensor& tensor);

}  // namespace tessera::python
