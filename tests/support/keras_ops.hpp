#pragma once

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Checks of functions of keras.ops against files that tests/golden/make_keras_ops_*.py wrote.
namespace tessera::test::keras_ops {

using Values = std::vector<DTensor>;
/// Functions by name, called with the inputs and attributes of a golden case.
using Calls = std::map<std::string, std::function<DTensor(const Values&, const Json&)>>;

/// Return an attribute: a number or a list of numbers as a list, which is empty if it is absent; an
/// integer; one that may be null or absent; a number; a text.
std::vector<int64_t> integers(const Json& attributes, const std::string& key);
int64_t integer(const Json& attributes, const std::string& key, int64_t otherwise);
std::optional<int64_t> maybe_integer(const Json& attributes, const std::string& key);
std::optional<double> number(const Json& attributes, const std::string& key);
std::string text(const Json& attributes, const std::string& key, const std::string& otherwise = "");

/// Checks the values and gradients of all cases in groups of golden/FILE, in up to 64 choices of
/// layouts on 1, 2, 4 and 2 by 2 devices: of the inputs or, without inputs, of the result. Indices
/// may be int64 instead of int32. Checks the second derivatives of cases with gradients, in
/// float64, against finite differences and on 2 by 2 devices. Checks that each function has a case.
void check_functions(const std::string& file, const std::vector<std::string>& groups,
                     const Calls& calls);

}  // namespace tessera::test::keras_ops
