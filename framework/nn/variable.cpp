#include <tessera/framework/nn/variable.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/mesh/internal/weight_placement.hpp>
#include <tessera/framework/nn/internal/gathered_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/stored_value.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

DTensor with_own_memory(const DTensor& value, const MemoryOrder& order) {
  const c10::InferenceMode inference;
  Blocks copies;
  const std::vector<BlockInfo>& infos = value.sharding()->blocks;
  for (size_t b = 0; b < infos.size(); ++b) {
    const DeviceMemory::For memory(infos[b].devices.front());
    copies.push_back(copy_in_order(value.blocks()[b], order));
  }
  return DTensor(value.sharding(), std::move(copies));
}

/// Copies `value` to the mesh of `like`: an update may be computed on the mesh where the variable
/// is read rather than where it is stored.
DTensor on_mesh_of(const DTensor& like, const DTensor& value) {
  if (is_abstract() || value.mesh() == like.mesh()) return value;
  return ops::copy_to_mesh(value, Layout::replicated(like.mesh(), value.rank()));
}

bool is_in_order(const DTensor& value, const MemoryOrder& order) {
  return std::all_of(value.blocks().begin(), value.blocks().end(),
                     [&](const at::Tensor& block) { return detail::is_in_order(block, order); });
}

}  // namespace

Variable::Variable(VariableSpec spec) : state_(std::make_shared<State>()) {
  stop_tracing("a Variable was made");
  state().spec = std::move(spec);
  state().tag->path = state().spec.path;
  state().tag->id = DTensor::next_id();
  state().tag->trainable = state().spec.trainable;
  const int64_t rank = static_cast<int64_t>(shape().size());
  state().placement = stored_placement({shape(), Layout::replicated(default_mesh(), rank)});
}

Variable::Variable(std::string path, DTensor value, bool trainable)
    : Variable(VariableSpec{std::move(path), value.shape(), value.dtype(), {}, {}, trainable}) {
  resolve(value);
  state().placement = stored_placement({shape(), value.layout()});
  if (!(layout() == value.layout())) value = copy_to_mesh_value(value, layout());
  set_value(value.owns_memory() ? std::move(value) : with_own_memory(value, {}));
}

void Variable::set_value(DTensor value) const {
  DeviceMemory::label(value, state().spec.memory_use);
  state().value = std::move(value);
  state().value.set_tag(state().tag);
}

void Variable::place(const Placement& placement) {
  stop_tracing("a Variable was placed");
  state().placed = true;
  const Layout& stored = (state().placement = stored_placement(placement)).layout;
  if (!has_value()) return;
  // state().value and not value(), which is abstract under an AbstractScope.
  const bool same_layout = state().value.layout() == stored;
  if (same_layout && (is_abstract() || !world_size_invariant())) return;
  const bool same_mesh = state().value.mesh() == stored.mesh();
  const ShardingPtr blocks = same_layout ? intern(shape(), dtype(), stored) : nullptr;
  if (blocks == state().value.sharding()) return;
  const DTensor moved = blocks      ? relayout_to(state().value, blocks)
                        : same_mesh ? relayout_value(state().value, stored)
                                    : copy_to_mesh_value(state().value, stored);
  set_value(with_own_memory(moved, state().spec.memory_order));
}

const DTensor& Variable::planned_value() const {
  const Layout layout = abstract_layout(this->layout());
  DTensor& planned = state().planned;
  if (!planned.defined() || !(planned.layout() == layout)) {
    planned = DTensor(intern(shape(), dtype(), layout), {});
    planned.set_tag(state().tag);
  }
  return planned;
}

const DTensor& Variable::value() const {
  if (is_abstract()) return planned_value();
  if (!has_value()) {
    if (!state().spec.initializer) {
      throw StateError(path(), "a variable has a value or an initializer", "neither",
                       "assign it first");
    }
    const NoRecording no_tape;
    const TracerScope untraced(nullptr);
    const DefaultLayoutScope scope(layout());
    const DTensor drawn = state().spec.initializer->draw(
        shape(), dtype(), fold_in(state().spec.seed, stable_hash(path())));
    const ShardingPtr sharding = intern(shape(), dtype(), layout());
    const DTensor placed = relayout_to(drawn, sharding);
    set_value(with_own_memory(placed, state().spec.memory_order));
  }
  return state().value;
}

DTensor Variable::read(std::optional<at::ScalarType> dtype) const {
  DTensor result = value();
  const Placement& placement = state().placement;
  const Layout use = placement.use ? abstract_layout(*placement.use) : Layout();
  if (placement.use && use.mesh() == result.mesh()) return read_together({*this}, dtype)[0];
  if (placement.use) {
    // The gradient's reduction is logged under the variable's path.
    const CommLabel label(path());
    result = ops::copy_to_mesh(result, use);
  }
  const bool cast = dtype && *dtype != this->dtype() && at::isFloatingType(this->dtype());
  return cast ? ops::cast(result, *dtype) : result;
}

void Variable::assign(const DTensor& value) {
  if (value.shape() != shape()) {
    throw ShapeError(path(), "a new value must have the variable's shape " + to_string(shape()),
                     to_string(value.shape()), "reshape it first");
  }
  const auto assign = [variable = *this](std::span<const DTensor> in) mutable {
    variable.take(in[0]);
  };
  if (is_abstract()) {
    if (OpListener* const listener = tracer()) listener->action(std::span(&value, 1), assign, {});
    return;
  }
  traced(std::span(&value, 1), assign);
}

void Variable::assign_in_call(const DTensor& value) {
  const NoRecording no_tape;
  const Placement& placement = state().placement;
  const bool on_other_mesh = placement.use && !(placement.use->mesh() == placement.layout.mesh());
  // assign() would relayout too, but not while planning.
  const Layout layout = abstract_layout(on_other_mesh ? *placement.use : placement.layout);
  const uint64_t before = state().tag->version;
  assign(ops::relayout(value, layout));
  state().tag->expected += state().tag->version - before;
}

void Variable::take(const DTensor& value) {
  const NoRecording no_tape;
  const std::shared_ptr<StoredValue> stored = StoredValue::of(value);
  if (stored && stored->sharding == intern(shape(), dtype(), layout())) {
    ++state().tag->version;
    return set_value(DeferredValue::make(stored->sharding, stored));
  }
  DTensor source = ops::cast(value, dtype());
  if (!(source.mesh() == layout().mesh())) source = copy_to_mesh_value(source, layout());
  source = relayout_to(source, intern(shape(), dtype(), layout()));
  ++state().tag->version;
  if (has_value() && state().value.sharding() == source.sharding() && state().value.owns_memory()) {
    const c10::InferenceMode inference;
    for (size_t b = 0; b < source.blocks().size(); ++b) {
      state().value.blocks()[b].copy_(source.blocks()[b]);
    }
    return;
  }
  set_value(with_own_memory(source, state().spec.memory_order));
}

void Variable::assign_add(const DTensor& value) {
  const NoRecording no_tape;
  assign(ops::add(this->value(), on_mesh_of(this->value(), value)));
}

void Variable::assign_sub(const DTensor& value) {
  const NoRecording no_tape;
  assign(ops::sub(this->value(), on_mesh_of(this->value(), value)));
}

const Blocks& Variable::writable() {
  if (is_abstract()) return value().blocks();
  stop_tracing("a Variable was written to in place");
  value();
  ++state().tag->version;
  const MemoryOrder& order = state().spec.memory_order;
  if (!state().value.owns_memory() || !is_in_order(state().value, order)) {
    set_value(with_own_memory(state().value, order));
  }
  return state().value.blocks();
}

void detail::drop_value(Variable& variable) {
  stop_tracing("a Variable lost its value");
  ++variable.state().tag->version;
  variable.state().value = {};
  variable.state().planned = {};
}

std::vector<DTensor> GradientTape::gradient(const DTensor& target,
                                            const std::vector<Variable>& sources,
                                            const GradientOptions& options) {
  std::vector<DTensor> values;
  for (const Variable& source : sources) values.push_back(source.value());
  return gradient(target, values, options);
}

DTensor GradientTape::gradient(const DTensor& target, const Variable& source,
                               const GradientOptions& options) {
  return gradient(target, source.value(), options);
}

}  // namespace tessera
