#include <tessera/framework/serving/internal/request_pictures.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/datasets/files/image.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

// A small file may hold a large picture: half a gigabyte of values in a request at most.
constexpr int64_t max_values = int64_t{1} << 27;

bool takes_pictures(const Shape& shape) {
  return shape.size() == 4 && (shape[3] == 1 || shape[3] == 3 || shape[3] == 4);
}

/// Decodes the pictures of one input. Throws RequestError, FileError.
void decode(PredictInput& rows, const ExportedTensor& input, const std::string& where) {
  const auto count = static_cast<int64_t>(rows.texts.size());
  const int64_t channels = input.shape[3];
  Shape shape{count, input.shape[1], input.shape[2], channels};
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const std::string file = str(where, "[", i, "]");
    const Image image = decode_image({.bytes = rows.texts[static_cast<size_t>(i)],
                                      .channels = channels,
                                      .file = file,
                                      .max_pixels = max_values / (count * channels)});
    // The first picture sets a size that is unknown.
    if (shape[1] < 0) shape[1] = image.height;
    if (shape[2] < 0) shape[2] = image.width;
    if (image.height != shape[1] || image.width != shape[2]) {
      throw RequestError(400, file, str("a picture has height ", shape[1], " and width ", shape[2]),
                         str(image.height, " and ", image.width), "resize it");
    }
    if (i == 0) values.reserve(image.pixels.size() * static_cast<size_t>(count));
    values.insert(values.end(), image.pixels.begin(), image.pixels.end());
  }
  rows = {.texts = {}, .values = std::move(values), .shape = std::move(shape)};
}

}  // namespace

std::optional<HttpResponse> decode_pictures(PredictRequest& request, const ExportedModel& model) {
  if (model.text || request.inputs() != model.inputs.size()) return std::nullopt;
  try {
    for (size_t i = 0; i < request.inputs(); ++i) {
      PredictInput& rows = request.input(i);
      const ExportedTensor& input = model.inputs[i];
      const bool encoded = rows.is_text() && rows.encoded == rows.texts.size();
      if (encoded && takes_pictures(input.shape)) decode(rows, input, "request, " + input.name);
    }
  } catch (const Error& error) {
    return error_response(400, error.what());
  }
  return std::nullopt;
}

}  // namespace tessera::detail
