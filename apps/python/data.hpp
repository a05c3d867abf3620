#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera::python {

namespace nb = nanobind;

/// Names of a model's inputs and outputs, by which dicts of arrays are read.
struct DataNames {
  explicit DataNames(const Model& model);
  std::vector<std::string> inputs, outputs;
};

/// Returns the arrays x, y and sample_weight: each one array, a tuple, a list or a dict of arrays,
/// or None. `caller` names the method in errors.
Examples examples_of(const DataNames& names, nb::handle x, nb::handle y, nb::handle sample_weight,
                     const std::string& caller);

/// Returns the data of fit, evaluate or predict: arrays, or an iterable `x` of batches, each x,
/// (x, y) or (x, y, sample_weight). Throws TypeError or ValueError for anything else.
DatasetHandle data_of(const DataNames& names, nb::handle x, nb::handle y, nb::handle sample_weight,
                      const std::string& caller);

/// Returns the data of a validation: (x, y), (x, y, sample_weight), or an iterable of batches; null
/// for None.
DatasetHandle validation_data_of(const DataNames& names, nb::handle data);

}  // namespace tessera::python
