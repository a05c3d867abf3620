#include <tessera/layers/augmentation/augmentation_handle.hpp>

#include <mutex>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

std::vector<at::Tensor> AugmentationHandle::operator()(const std::vector<at::Tensor>& inputs,
                                                       Seed seed) const {
  static const Mesh here = create_mesh({{"batch", 1}}, virtual_cpus(1));
  static std::mutex building;
  const bool single = !inputs.empty() && inputs[0].dim() == 3;
  Inputs values;
  Shapes shapes;
  for (const at::Tensor& input : inputs) {
    const at::Tensor rows = single ? input.unsqueeze(0) : input;
    values.push_back(pack(rows, Layout::replicated(here, rows.dim())));
    shapes.push_back(values.back().shape());
  }
  {
    const std::lock_guard lock(building);
    layer()->build(shapes);
  }
  const CallContext context{.training = true,
                            .random = std::make_shared<RandomStream>(seed.a, seed.b)};
  std::vector<at::Tensor> made;
  for (const DTensor& output : outputs(values, context)) {
    made.push_back(single ? output.full().squeeze(0) : output.full());
  }
  return made;
}

at::Tensor AugmentationHandle::operator()(const at::Tensor& images, Seed seed) const {
  return (*this)(std::vector<at::Tensor>{images}, seed)[0];
}

at::Tensor AugmentationHandle::operator()(const at::Tensor& images,
                                          const std::vector<Seed>& seeds) const {
  if (images.dim() != 4 || images.size(0) != static_cast<int64_t>(seeds.size())) {
    throw ShapeError(layer()->class_name() + " " + layer()->path(),
                     "images are a batch with a seed for each",
                     str(seeds.size(), " seeds for ", to_string(images.sizes().vec())),
                     "give one seed for the whole batch, or as many as rows");
  }
  std::vector<at::Tensor> made;
  for (size_t row = 0; row < seeds.size(); ++row) {
    made.push_back((*this)(images[static_cast<int64_t>(row)], seeds[row]));
  }
  return made.empty() ? images : at::stack(made);
}

}  // namespace tessera::detail
