#include <tessera/layers/augmentation/max_num_bounding_boxes.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

namespace {

struct MaxNumBoundingBoxesArguments : MaxNumBoundingBoxesOptions {
  int64_t max_number = 0;
};

template <class Visit>
void fields(MaxNumBoundingBoxesArguments& a, const Visit& visit) {
  RequiredOption max_number{a.max_number};
  visit("max_number", max_number);
  visit("fill_value", a.fill_value);
  visit("data_format", a.data_format);
}

class MaxNumBoundingBoxesLayer final
    : public AugmentationOf<MaxNumBoundingBoxesLayer, MaxNumBoundingBoxesArguments> {
 public:
  static constexpr const char* keras_name = "MaxNumBoundingBoxes";
  explicit MaxNumBoundingBoxesLayer(const MaxNumBoundingBoxesArguments& arguments);
  int64_t draws(const Shape&) const override { return 0; }
  DTensor transform(const DTensor& images, const ImageDraws&) const override { return images; }
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;
};

const RegisteredLayerOf<MaxNumBoundingBoxesLayer> registered_max_num_bounding_boxes;

MaxNumBoundingBoxesLayer::MaxNumBoundingBoxesLayer(const MaxNumBoundingBoxesArguments& arguments)
    : AugmentationOf(arguments) {
  if (arguments.max_number >= 0) return;
  throw ConfigError(where(), "max_number must be at least 0", str(arguments.max_number),
                    "give the number of boxes that each image has");
}

BoundingBoxes MaxNumBoundingBoxesLayer::transform_boxes(const BoundingBoxes& boxes, const Shape&,
                                                        const ImageDraws&) const {
  const int64_t kept = std::min(boxes.boxes.size(1), arguments_.max_number);
  const auto fitted = [&](const at::Tensor& x) {
    std::vector<int64_t> missing = x.sizes().vec();
    missing[1] = arguments_.max_number - kept;
    const at::Tensor padding = at::full(missing, arguments_.fill_value, x.options());
    return at::cat({x.narrow(1, 0, kept), padding}, 1);
  };
  return {fitted(boxes.boxes), fitted(boxes.labels)};
}

}  // namespace

MaxNumBoundingBoxes::MaxNumBoundingBoxes(int64_t max_number,
                                         const MaxNumBoundingBoxesOptions& options)
    : AugmentationHandle(std::make_shared<MaxNumBoundingBoxesLayer>(
          MaxNumBoundingBoxesArguments{options, max_number})) {}

}  // namespace tessera
