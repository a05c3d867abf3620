#include <tessera/layers/augmentation/augmentation_handle.hpp>

#include <mutex>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/internal/row_part_scope.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/layers/internal/labeled_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Builds the layer for these input shapes, one thread at a time.
void build_for(Layer& layer, const Shapes& shapes) {
  static std::mutex building;
  const std::lock_guard lock(building);
  layer.build(shapes);
}

CallContext training_with(Seed seed) {
  return {.training = true, .random = std::make_shared<RandomStream>(seed.a, seed.b)};
}

/// Applies f to each tensor that is defined.
template <class Function>
LabeledImages each_of(const LabeledImages& data, const Function& f) {
  const auto mapped = [&](const at::Tensor& x) { return x.defined() ? f(x) : x; };
  return {mapped(data.images),
          mapped(data.labels),
          {mapped(data.bounding_boxes.boxes), mapped(data.bounding_boxes.labels)},
          mapped(data.segmentation_masks)};
}

}  // namespace

std::vector<at::Tensor> AugmentationHandle::operator()(const std::vector<at::Tensor>& inputs,
                                                       Seed seed) const {
  const bool single = !inputs.empty() && inputs[0].dim() == 3;
  Inputs values;
  Shapes shapes;
  for (const at::Tensor& input : inputs) {
    const at::Tensor rows = single ? input.unsqueeze(0) : input;
    values.push_back(packed_on_host(rows));
    shapes.push_back(values.back().shape());
  }
  build_for(*layer(), shapes);
  // A single image is row 0 of its batch.
  std::optional<RowPartScope> row_scope;
  if (single) row_scope.emplace(std::nullopt);
  std::vector<at::Tensor> results;
  for (const DTensor& output : outputs(values, training_with(seed))) {
    results.push_back(single ? output.full().squeeze(0) : output.full());
  }
  return results;
}

at::Tensor AugmentationHandle::operator()(const at::Tensor& images, Seed seed) const {
  return (*this)(std::vector<at::Tensor>{images}, seed)[0];
}

void AugmentationHandle::check_seeds(const at::Tensor& images, size_t seeds) const {
  if (images.dim() == 4 && images.size(0) == static_cast<int64_t>(seeds)) return;
  throw ShapeError(layer()->class_name() + " " + layer()->path(),
                   "images are a batch with one seed for each row",
                   str(seeds, " seeds for ", to_string(images.sizes().vec())),
                   "give one seed for the whole batch, or as many as rows");
}

at::Tensor AugmentationHandle::operator()(const at::Tensor& images,
                                          const std::vector<Seed>& seeds) const {
  check_seeds(images, seeds.size());
  std::vector<at::Tensor> results;
  for (size_t row = 0; row < seeds.size(); ++row) {
    results.push_back((*this)(images[static_cast<int64_t>(row)], seeds[row]));
  }
  return results.empty() ? images : at::stack(results);
}

LabeledImages AugmentationHandle::labeled(const LabeledImages& data,
                                          const std::vector<Seed>& seeds) const {
  check_seeds(data.images.defined() ? data.images : at::empty({0}), seeds.size());
  check_labeled(layer()->class_name() + " " + layer()->path(), data);
  if (seeds.empty()) return data;
  std::vector<LabeledImages> rows;
  for (size_t row = 0; row < seeds.size(); ++row) {
    const auto at_row = [&](const at::Tensor& x) { return x[static_cast<int64_t>(row)]; };
    rows.push_back(labeled(each_of(data, at_row), seeds[row]));
  }
  const auto stacked = [&](const auto& member) {
    std::vector<at::Tensor> all;
    for (const LabeledImages& row : rows) all.push_back(member(row));
    return all[0].defined() ? at::stack(all) : all[0];
  };
  return {stacked([](const LabeledImages& x) { return x.images; }),
          stacked([](const LabeledImages& x) { return x.labels; }),
          {stacked([](const LabeledImages& x) { return x.bounding_boxes.boxes; }),
           stacked([](const LabeledImages& x) { return x.bounding_boxes.labels; })},
          stacked([](const LabeledImages& x) { return x.segmentation_masks; })};
}

LabeledImages AugmentationHandle::labeled(const LabeledImages& data, Seed seed) const {
  const std::string where = layer()->class_name() + " " + layer()->path();
  if (!data.images.defined() || (data.images.dim() != 3 && data.images.dim() != 4)) {
    throw ShapeError(where, "images are one image of three axes or a batch of four",
                     data.images.defined() ? to_string(data.images.sizes().vec()) : "none",
                     "give height, width and channels, as data_format orders them");
  }
  const bool single = data.images.dim() == 3;
  const LabeledImages batch =
      single ? each_of(data, [](const at::Tensor& x) { return x.unsqueeze(0); }) : data;
  check_labeled(where, batch);
  build_for(*layer(), {batch.images.sizes().vec()});
  std::optional<RowPartScope> row_scope;
  if (single) row_scope.emplace(std::nullopt);
  const LabeledImages result = call_labeled(*layer(), batch, training_with(seed));
  return single ? each_of(result, [](const at::Tensor& x) { return x.squeeze(0); }) : result;
}

}  // namespace tessera
