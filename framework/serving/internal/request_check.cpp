#include <tessera/framework/serving/internal/request_check.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/internal/export_files.hpp>

namespace tessera::detail {
namespace {

/// Returns why values do not fit an input of this dtype; "" if they do.
std::string wrong_values(const PredictInput& rows, at::ScalarType dtype) {
  if (rows.is_bool != (dtype == at::kBool)) {
    return rows.is_bool ? "takes numbers. Received: true or false."
                        : "takes true and false. Received: numbers.";
  }
  if (dtype != at::kLong && dtype != at::kInt && dtype != at::kByte) return "";
  // float32 does not represent all larger integers.
  constexpr float limit{1 << 24};
  const bool bytes = dtype == at::kByte;
  for (const float value : rows.values) {
    const bool fraction = value != std::floor(value);
    const bool fits = bytes ? value >= 0 && value <= 255 : std::abs(value) < limit;
    if (!fraction && fits) continue;
    return str("takes integers ", bytes ? "from 0 to 255" : "of magnitude less than 2^24",
               ". Received: ",
               fraction ? "a fraction."
               : bytes  ? "another one."
                        : "a larger one.");
  }
  return "";
}

/// Returns why the rows do not fit an input; "" if they do.
std::string wrong_rows(const PredictInput& rows, const ExportedTensor& input, bool takes_text) {
  if (takes_text != rows.is_text()) {
    return str("takes ", takes_text ? "texts" : "numbers",
               ". Received: ", takes_text ? "numbers" : "texts", ".");
  }
  if (takes_text) return "";
  std::string wrong = wrong_values(rows, input.dtype);
  if (!wrong.empty() || fits_shape(input.shape, rows.shape)) return wrong;
  return str("takes instances of the shape ", to_string(input.shape),
             ". Received: ", to_string(rows.shape), ". To fix: send that shape.");
}

/// Throws StateError if a weight of the model is not finite, as after a diverged training.
void check_weights(const ExportedModel& model) {
  for (const Variable& weight : model.model.weights()) {
    const at::Tensor values = weight.value().full();
    if (!values.is_floating_point() || at::isfinite(values).all().item<bool>()) continue;
    throw StateError(weight.path(), "the weights of a model are finite numbers",
                     "NaN or infinite ones", "export a version whose weights are finite");
  }
}

}  // namespace

bool share_batch(const PredictRequest& a, const PredictRequest& b) {
  bool same = a.inputs() == b.inputs();
  for (size_t i = 0; same && i < a.inputs(); ++i) {
    const PredictInput& one = a.input(i);
    const PredictInput& other = b.input(i);
    same =
        one.is_text() == other.is_text() && std::equal(one.shape.begin() + 1, one.shape.end(),
                                                       other.shape.begin() + 1, other.shape.end());
  }
  return same;
}

std::optional<HttpResponse> wrong_request(const PredictRequest& request, const ExportedModel& model,
                                          size_t signature) {
  const std::vector<ExportedTensor>& inputs = model.inputs;
  const bool other_names = request.inputs() > 1 && request.signature != signature;
  if (request.inputs() != inputs.size() || other_names) {
    return error_response(503,
                          "[request] the inputs must be those of the version in service. "
                          "Received: those of another one. To fix: try again.");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string wrong = wrong_rows(request.input(i), inputs[i], model.text != nullptr);
    if (wrong.empty()) continue;
    const std::string where = inputs.size() == 1 ? "[request] the model "
                                                 : "[request, " + inputs[i].name + "] the input ";
    return error_response(400, where + wrong);
  }
  return std::nullopt;
}

bool are_finite(std::span<const PredictOutput> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const PredictOutput& output) {
    return std::all_of(output.values.begin(), output.values.end(),
                       [](float value) { return std::isfinite(value); });
  });
}

void fail_non_finite(const ExportedModel& model) {
  check_weights(model);
  throw ConfigError("request", "the model's outputs are finite", "an overflow",
                    "send smaller numbers");
}

}  // namespace tessera::detail
