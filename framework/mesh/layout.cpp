#include <tessera/framework/mesh/layout.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

std::string axis_text(const AxisSpec& axis) {
  if (axis.dims().empty()) return unsharded;
  if (axis.dims().size() == 1) return axis.dims()[0];
  std::string text = "(";
  for (size_t i = 0; i < axis.dims().size(); ++i) text += (i ? "," : "") + axis.dims()[i];
  return text + ")";
}

std::string spec_text(const LayoutSpec& spec, const char* separator) {
  std::string text;
  for (size_t a = 0; a < spec.size(); ++a) text += (a ? separator : "") + axis_text(spec[a]);
  return text;
}

LayoutError unreadable_layout(const std::string& text) {
  return LayoutError("layout", "a layout is written sharding_specs:… mesh:…", in_quotes(text),
                     "use the text of Layout::to_string()");
}

/// Parses the first axis of `text` and removes it and the comma after it.
AxisSpec take_axis(std::string& text) {
  const bool several = text[0] == '(';
  const size_t end = several ? text.find(')') : text.find(',');
  const std::string inside = text.substr(several, end == text.npos ? end : end - several);
  const size_t next = several && end != text.npos ? end + 1 : end;
  text = next >= text.size() ? "" : text.substr(next + 1);
  std::vector<std::string> dims(1);
  for (char c : inside) {
    if (c == ',') {
      dims.emplace_back();
    } else {
      dims.back() += c;
    }
  }
  return several ? AxisSpec(std::move(dims)) : AxisSpec(dims[0]);
}

void check_rank(int64_t rank, int64_t min_rank) {
  if (rank < min_rank || rank > 64) {
    throw LayoutError("layout", str("the rank of this layout is ", min_rank, " to 64"),
                      str("rank ", rank), "pass the number of the tensor's axes");
  }
}

}  // namespace

std::string to_string(Reduce kind) {
  return kind == Reduce::sum ? "sum" : kind == Reduce::max ? "max" : "min";
}

std::string to_string(const LayoutSpec& spec) { return "(" + spec_text(spec, ", ") + ")"; }

Layout::Layout(const LayoutSpec& spec, const Mesh& mesh) {
  std::vector<std::vector<int>> axes;
  for (const AxisSpec& axis : spec) {
    std::vector<int> dims;
    for (const std::string& dim : axis.dims()) {
      if (mesh.find(dim) < 0) {
        throw LayoutError("layout", "the layout names mesh dimension " + in_quotes(dim),
                          "mesh " + mesh.describe(), suggestion(dim, mesh.dim_names()));
      }
      dims.push_back(mesh.find(dim));
    }
    axes.push_back(std::move(dims));
  }
  *this = from_axes(mesh, std::move(axes));
}

Layout Layout::from_axes(const Mesh& mesh, std::vector<std::vector<int>> axes, DimMask pending,
                         Reduce kind) {
  State state;
  state.mesh = mesh;
  for (const auto& dims : axes) {
    for (int dim : dims) {
      const DimMask bit = 1u << dim;
      if ((state.sharded | pending) & bit) {
        throw LayoutError("layout", "a mesh dimension shards at most one axis",
                          "\"" + mesh.names(bit) + "\" twice",
                          "use another dimension or leave one axis unsharded");
      }
      state.sharded |= bit;
    }
  }
  state.axes = std::move(axes);
  state.pending = pending;
  state.kind = pending ? kind : Reduce::sum;
  size_t hash = mesh.hash();
  for (const auto& dims : state.axes) {
    hash = mix(hash, dims.size());
    for (int dim : dims) hash = mix(hash, static_cast<size_t>(dim));
  }
  state.hash = mix(hash, pending * 4 + static_cast<size_t>(state.kind));
  return Layout(std::make_shared<const State>(std::move(state)));
}

Layout Layout::replicated(const Mesh& mesh, int64_t rank) {
  check_rank(rank, 0);
  return from_axes(mesh, std::vector<std::vector<int>>(static_cast<size_t>(rank)));
}

Layout Layout::batch_sharded(const Mesh& mesh, const std::string& dim, int64_t rank) {
  check_rank(rank, 1);
  LayoutSpec spec(static_cast<size_t>(rank), nullptr);
  spec.front() = dim;
  return Layout(spec, mesh);
}

Layout Layout::inner_sharded(const Mesh& mesh, const std::string& dim, int64_t rank) {
  check_rank(rank, 1);
  LayoutSpec spec(static_cast<size_t>(rank), nullptr);
  spec.back() = dim;
  return Layout(spec, mesh);
}

int64_t Layout::num_shards(int64_t axis_index) const {
  int64_t k = 1;
  for (int dim : axis(axis_index)) k *= mesh().dim_size(dim);
  return k;
}

LayoutSpec Layout::spec() const {
  LayoutSpec spec;
  for (const auto& dims : state_->axes) {
    std::vector<std::string> names;
    for (int dim : dims) names.push_back(mesh().dims()[static_cast<size_t>(dim)].first);
    spec.emplace_back(std::move(names));
  }
  return spec;
}

Layout Layout::remove(const std::vector<int64_t>& removed) const {
  std::vector<bool> drop(state_->axes.size());
  for (int64_t axis : removed) {
    if (axis < -rank() || axis >= rank()) {
      throw LayoutError("layout", str("axes to remove are in [", -rank(), ", ", rank(), ")"),
                        str("axis ", axis, " of ", describe()), "name an axis the layout has");
    }
    drop[static_cast<size_t>(axis < 0 ? axis + rank() : axis)] = true;
  }
  std::vector<std::vector<int>> axes;
  for (size_t a = 0; a < drop.size(); ++a) {
    if (!drop[a]) axes.push_back(state_->axes[a]);
  }
  return from_axes(mesh(), std::move(axes), partial_dims(), partial_kind());
}

std::string Layout::to_string() const {
  return "sharding_specs:" + spec_text(spec(), ",") + " mesh:" + mesh().to_string();
}

Layout Layout::from_string(const std::string& text) {
  const std::string head = "sharding_specs:";
  const size_t middle = text.find(" mesh:");
  if (text.rfind(head, 0) != 0 || middle == std::string::npos) {
    throw unreadable_layout(text);
  }
  std::string rest = text.substr(head.size(), middle - head.size());
  LayoutSpec spec;
  while (!rest.empty()) spec.push_back(take_axis(rest));
  const Layout layout(spec, Mesh::from_string(text.substr(middle + 6)));
  if (layout.to_string() != text) throw unreadable_layout(text);
  return layout;
}

std::string Layout::describe() const {
  if (!defined()) return "(no layout)";
  std::string text = tessera::to_string(spec());
  if (is_partial()) {
    text += " +" + tessera::to_string(partial_kind()) + " over " + mesh().names(partial_dims());
  }
  return text;
}

bool Layout::operator==(const Layout& other) const {
  if (state_ == other.state_) return true;
  if (!state_ || !other.state_ || state_->hash != other.state_->hash) return false;
  return state_->axes == other.state_->axes && state_->pending == other.state_->pending &&
         state_->kind == other.state_->kind && state_->mesh == other.state_->mesh;
}

Layout Layout::with_partial(DimMask dims, Reduce kind) const {
  return from_axes(mesh(), state_->axes, dims, kind);
}

}  // namespace tessera
