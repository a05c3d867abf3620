#include <tessera/layers/normalization/normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/normalized_axes.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(GroupNormalizationOptions& o, const Visit& visit) {
  visit("groups", o.groups);
  visit("axis", o.axis);
  affine_fields(o, visit);
}

namespace {

class GroupNormalizationLayer final
    : public LayerOf<GroupNormalizationLayer, GroupNormalizationOptions> {
 public:
  static constexpr const char* keras_name = "GroupNormalization";
  explicit GroupNormalizationLayer(const GroupNormalizationOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  Variable gamma_, beta_;
};

const RegisteredLayerOf<GroupNormalizationLayer> registered_group_normalization;

GroupNormalizationLayer::GroupNormalizationLayer(const GroupNormalizationOptions& options)
    : LayerOf(options) {
  if (options.groups == -1 || options.groups > 0) return;
  throw ConfigError(where(), "groups is positive, or -1", str(options.groups),
                    "give the number of groups, -1 for one per channel");
}

Shape GroupNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const std::vector<int64_t> axes = normalized_axes(where(), {arguments_.axis}, input);
  if (axes[0] == 0) {
    throw ShapeError(where(), "axis is not the batch axis", str(arguments_.axis),
                     "give a later axis");
  }
  const Shape extents = extents_of(input, axes);
  if (built()) {
    check_as_built(
        where(), extents,
        extents_of(built_for()[0], normalized_axes(where(), {arguments_.axis}, built_for()[0])));
  }
  if (arguments_.groups == -1 || extents[0] % arguments_.groups == 0) return input;
  throw ShapeError(where(), str(arguments_.groups, " groups divide axis ", arguments_.axis),
                   to_string(input), "give a number of groups that divides it");
}

void GroupNormalizationLayer::make_weights(const Shapes& inputs) {
  const Shape shape = extents_of(inputs[0], normalized_axes(path(), {arguments_.axis}, inputs[0]));
  const auto add = [this](auto&&... weight) { return add_weight(weight...); };
  add_affine(arguments_, shape, add, gamma_, beta_);
}

DTensor GroupNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = c10::promoteTypes(inputs[0].dtype(), at::kFloat);
  const int64_t axis = normalize_axis(arguments_.axis, inputs[0].rank(), path());
  const int64_t channels = inputs[0].size(axis);
  const int64_t groups = arguments_.groups == -1 ? channels : arguments_.groups;
  Shape grouped = inputs[0].shape();
  grouped[static_cast<size_t>(axis)] = channels / groups;
  grouped.insert(grouped.begin() + axis, groups);
  const DTensor x = ops::reshape(inputs[0], grouped);
  const Shape weights = broadcastable_shape(grouped, {axis, axis + 1});
  ops::Axes reduced;
  for (int64_t a = 1; a < x.rank(); ++a) {
    if (a != axis) reduced.push_back(a);
  }
  const auto weight = [&](const Variable& variable) {
    return variable.defined() ? ops::reshape(read(variable, dtype), weights) : DTensor();
  };
  const DTensor y =
      normalized_over(x, weight(gamma_), weight(beta_), weights, reduced, arguments_.epsilon);
  return ops::cast(ops::reshape(y, inputs[0].shape()), dtype_policy().compute);
}

}  // namespace

GroupNormalization::GroupNormalization(const GroupNormalizationOptions& options)
    : LayerHandle(make_layer<GroupNormalizationLayer>(options)) {}

}  // namespace tessera
