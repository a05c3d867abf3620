#include <tessera/framework/serving/http/predict_reply.hpp>

#include <array>
#include <charconv>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {
namespace {

void append_number(std::string& text, float value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(digits.data(), end);
}

/// Appends the values of one index of the axes before `axis` as nested lists; returns the rest.
std::span<const float> append_values(std::string& text, std::span<const float> values,
                                     const Shape& shape, size_t axis) {
  if (axis == shape.size()) {
    append_number(text, values[0]);
    return values.subspan(1);
  }
  text += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) text += ", ";
    values = append_values(text, values, shape, axis + 1);
  }
  text += ']';
  return values;
}

/// Appends {"NAME": ..., ...}, where `append` writes the value of an output.
template <class Append>
void append_named(std::string& text, std::span<const PredictOutput> outputs, const Append& append) {
  for (const PredictOutput& output : outputs) {
    text += &output == outputs.data() ? "{" : ", ";
    text += to_json_text(std::string(output.name), -1) + ": ";
    append(output);
  }
  text += '}';
}

}  // namespace

std::string predict_reply(std::span<const PredictOutput> outputs,
                          std::span<const std::string> labels, bool columnar) {
  std::string text = columnar ? "{\"outputs\": " : "{\"predictions\": ";
  if (outputs.size() == 1) {
    append_values(text, outputs[0].values, outputs[0].shape, 0);
  } else if (columnar) {
    append_named(text, outputs, [&](const PredictOutput& output) {
      append_values(text, output.values, output.shape, 0);
    });
  } else {
    for (int64_t row = 0; row < outputs[0].shape[0]; ++row) {
      text += row == 0 ? "[" : ", ";
      append_named(text, outputs, [&](const PredictOutput& output) {
        const size_t width = output.values.size() / static_cast<size_t>(output.shape[0]);
        append_values(text, output.values.subspan(width * static_cast<size_t>(row), width),
                      output.shape, 1);
      });
    }
    text += ']';
  }
  if (!labels.empty()) {
    const std::vector<std::string> list(labels.begin(), labels.end());
    text += ", \"labels\": " + to_json_text(list, -1);
  }
  return text + "}\n";
}

std::string predict_reply(std::span<const float> values, const Shape& shape,
                          std::span<const std::string> labels, bool columnar) {
  const PredictOutput output{"", values, shape};
  return predict_reply(std::span(&output, 1), labels, columnar);
}

std::string error_reply(const std::string& text) {
  return to_json_text({{"error", text}}, -1) + "\n";
}

}  // namespace tessera::detail
