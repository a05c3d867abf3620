#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/model/model.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

/// Returns the models that Keras trained and saved, with the course of further training:
/// keras_training.zip of tests/golden.
const Json& keras_training();

/// Returns one of its cases by name.
const Json& keras_training_case(const std::string& name);

/// Returns the training data of a case.
Examples data_of(const Json& training_case);

/// Writes the archive of a case to a folder; returns its path.
std::string archive_of(const TempFolder& folder, const std::string& name);

double loss_of(const ModelHandle& model, const Examples& examples);
std::vector<double> losses_of(const ModelHandle& model, const Examples& examples, size_t steps);

}  // namespace tessera::test
