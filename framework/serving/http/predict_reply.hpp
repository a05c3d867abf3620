#pragma once

#include <span>
#include <string>
#include <string_view>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// The values of one output for the rows of a request.
struct PredictOutput {
  std::string_view name;
  std::span<const float> values;
  Shape shape;  ///< [rows, ...]
};

/// Returns the response body: {"predictions": [...]} or, if `columnar`, {"outputs": [...]}, with
/// the values as nested lists of the shortest decimals that parse to the same float32, and
/// "labels": [...] with one label per row if there are any. Of several outputs, each prediction is
/// an object {"NAME": ..., ...}, or "outputs" is one: {"NAME": [...], ...}. Values must be finite.
std::string predict_reply(std::span<const PredictOutput> outputs,
                          std::span<const std::string> labels, bool columnar);
/// Returns the response body for the values [rows, ...] of a single output.
std::string predict_reply(std::span<const float> values, const Shape& shape,
                          std::span<const std::string> labels, bool columnar);

/// Returns {"error": "..."}, TensorFlow Serving's error body.
std::string error_reply(const std::string& text);

}  // namespace tessera::detail
