#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/model/model.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

/// The models that Keras trained and saved, and how it went on: keras_training.zip of tests/golden.
const Json& keras_training();

/// One of its cases, by name.
const Json& keras_training_case(const std::string& name);

/// What a case is trained on.
Examples data_of(const Json& training_case);

/// The archive of a case as a file in a folder; gives its path.
std::string archive_of(const TempFolder& folder, const std::string& name);

double loss_of(const ModelHandle& model, const Examples& examples);
std::vector<double> losses_of(const ModelHandle& model, const Examples& examples, size_t steps);

}  // namespace tessera::test
