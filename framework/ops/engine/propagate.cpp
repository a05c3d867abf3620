#include <tessera/framework/ops/engine/propagate.hpp>

#include <algorithm>

#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

constexpr int gather = -1;  // nothing stays sharded over the dimension
constexpr int keep = -2;    // a pending reduction passes through

bool passes(Passes kinds, Reduce kind) {
  switch (kinds) {
    case Passes::nothing:
      return false;
    case Passes::sums:
      return kind == Reduce::sum;
    case Passes::maxima:
      return kind == Reduce::max;
    case Passes::minima:
      return kind == Reduce::min;
    case Passes::all:
      return true;
  }
  return false;
}

class Search {
 public:
  Search(const Rule& rule, const Specs& in, const Specs& out, const std::vector<Layout>& layouts,
         uint32_t parameters)
      : rule_(rule),
        in_(in),
        out_(out),
        layouts_(layouts),
        parameters_(parameters),
        mesh_(layouts[0].mesh()) {}

  Propagation best() {
    for (int d = 0; d < mesh_.rank(); ++d) {
      if (used(d)) {
        dims_.push_back(d);
        options_.push_back(options(d));
      }
    }
    choice_.assign(static_cast<size_t>(mesh_.rank()), gather);
    visit(0);
    return std::move(best_);
  }

 private:
  bool used(int dim) const {
    return std::any_of(layouts_.begin(), layouts_.end(),
                       [&](const Layout& l) { return l.used_dims() >> dim & 1; });
  }

  /// Returns the factor that a dimension shards in an input; `gather` if there is none, or it may
  /// not be sharded.
  int factor_of(size_t input, int dim) const {
    const Layout& layout = layouts_[input];
    for (int64_t a = 0; a < layout.rank(); ++a) {
      const std::vector<int>& dims = layout.axis(a);
      if (std::find(dims.begin(), dims.end(), dim) == dims.end()) continue;
      const int factor = rule_.in[input][size_t(a)];
      const bool shardable =
          factor != Rule::none && rule_.factors[size_t(factor)] != FactorKind::replicated &&
          (in_[input].shape[size_t(a)] >= layout.num_shards(a) || !needs_all(factor));
      return shardable ? factor : gather;
    }
    return gather;
  }

  /// Whether an output lacks a `pass` factor: every shard computes that output in full, which an
  /// empty shard cannot do.
  bool needs_all(int factor) const {
    return rule_.factors[size_t(factor)] == FactorKind::pass &&
           std::any_of(rule_.out.begin(), rule_.out.end(), [&](const std::vector<int>& axes) {
             return std::find(axes.begin(), axes.end(), factor) == axes.end();
           });
  }

  bool can_keep(int dim) const {
    if (rule_.through.empty()) return false;
    bool first = true;
    Reduce kind = Reduce::sum;
    for (size_t i = 0; i < layouts_.size(); ++i) {
      const Layout& layout = layouts_[i];
      const bool joins =
          std::find(rule_.through.begin(), rule_.through.end(), int(i)) != rule_.through.end();
      if (!joins) {
        if (layout.used_dims() >> dim & 1) return false;
        continue;
      }
      if (!(layout.partial_dims() >> dim & 1)) return false;
      if (!passes(rule_.passes, layout.partial_kind())) return false;
      if (!first && layout.partial_kind() != kind) return false;
      kind = layout.partial_kind();
      first = false;
    }
    return true;
  }

  std::vector<int> options(int dim) const {
    std::vector<int> activation, parameter;
    bool active = false;
    for (size_t i = 0; i < layouts_.size(); ++i) {
      const bool is_parameter = parameters_ >> i & 1;
      if (!is_parameter && (layouts_[i].used_dims() >> dim & 1)) active = true;
      const int factor = factor_of(i, dim);
      std::vector<int>& list = is_parameter ? parameter : activation;
      if (factor != gather && std::find(list.begin(), list.end(), factor) == list.end()) {
        list.push_back(factor);
      }
    }
    std::vector<int> all;
    if (can_keep(dim)) all.push_back(keep);
    const int first = factor_of(0, dim);
    std::vector<int> factors = activation;
    // An activation keeps its layout: a parameter's other sharding does not compete with it.
    if (activation.empty() || !active) {
      factors.insert(factors.end(), parameter.begin(), parameter.end());
    }
    std::sort(factors.begin(), factors.end(), [&](int a, int b) {
      return std::make_pair(a != first, a) < std::make_pair(b != first, b);
    });
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    all.insert(all.end(), factors.begin(), factors.end());
    all.push_back(gather);
    return all;
  }

  void visit(size_t at) {
    if (at == dims_.size()) {
      consider();
      return;
    }
    for (int option : options_[at]) {
      choice_[size_t(dims_[at])] = option;
      visit(at + 1);
    }
  }

  /// Returns the mesh dimensions that shard a factor, in the order in which inputs list them.
  std::vector<int> dims_of(int factor) const {
    std::vector<int> dims;
    if (factor == Rule::none) return dims;
    for (size_t i = 0; i < layouts_.size(); ++i) {
      for (const std::vector<int>& axis : layouts_[i].axes()) {
        for (int dim : axis) {
          const bool mine = choice_[size_t(dim)] == factor && factor_of(i, dim) == factor;
          if (mine && std::find(dims.begin(), dims.end(), dim) == dims.end()) dims.push_back(dim);
        }
      }
    }
    return dims;
  }

  /// Returns a layout that is pending over the dimensions of `pending` that no axis uses.
  Layout layout_for(const std::vector<int>& factors, DimMask pending, Reduce kind) const {
    std::vector<std::vector<int>> axes;
    for (int factor : factors) {
      axes.push_back(dims_of(factor));
      for (int dim : axes.back()) pending &= ~(1u << dim);
    }
    return Layout::from_axes(mesh_, std::move(axes), pending, kind);
  }

  /// Keeps an input replicated along a window axis if it is so already, as shards slice their
  /// intervals of it locally; except the input that determines the windows.
  Layout input_layout(size_t input, DimMask pending) const {
    std::vector<std::vector<int>> axes;
    for (int factor : rule_.in[input]) {
      axes.push_back(dims_of(factor));
      const bool window =
          factor != Rule::none && rule_.factors[size_t(factor)] == FactorKind::window;
      // Reduce-scatters partial sums: cheaper than an all-reduce.
      const bool sharded = std::any_of(axes.back().begin(), axes.back().end(), [&](int dim) {
        return factor_of(input, dim) == factor || (layouts_[input].partial_dims() >> dim & 1);
      });
      if (window && !sharded && !determines_window(input, factor)) axes.back().clear();
    }
    return Layout::from_axes(mesh_, std::move(axes), pending, layouts_[input].partial_kind());
  }

  /// Whether shards of a factor leave partial sums: no output has it, windowed or not.
  bool reduces(int factor) const {
    const FactorKind kind = rule_.factors[size_t(factor)];
    if (kind == FactorKind::reduce) return true;
    return kind == FactorKind::window &&
           std::none_of(rule_.out.begin(), rule_.out.end(), [&](const std::vector<int>& axes) {
             return std::find(axes.begin(), axes.end(), factor) != axes.end();
           });
  }

  /// Whether this is the last input to have a factor that no output has.
  bool determines_window(size_t input, int factor) const {
    if (!reduces(factor)) return false;
    for (size_t i = input + 1; i < rule_.in.size(); ++i) {
      if (std::count(rule_.in[i].begin(), rule_.in[i].end(), factor) > 0) return false;
    }
    return true;
  }

  /// Finds the pending dimensions of the outputs; false if reductions of two kinds would meet.
  bool output_pending(DimMask& pending, Reduce& kind) const {
    pending = 0;
    bool known = false;
    for (int dim : dims_) {
      const int option = choice_[size_t(dim)];
      Reduce own = rule_.reduce;
      if (option == keep) {
        own = layouts_[size_t(rule_.through[0])].partial_kind();
      } else if (option == gather || !reduces(option)) {
        continue;
      }
      if (known && own != kind) return false;
      kind = own;
      known = true;
      pending |= 1u << dim;
    }
    return true;
  }

  void consider() {
    DimMask pending = 0, passing = 0;
    Reduce kind = Reduce::sum;
    if (!output_pending(pending, kind)) return;
    for (int dim : dims_) {
      if (choice_[size_t(dim)] == keep) passing |= 1u << dim;
    }
    Propagation plan;
    int relayouts = 0;
    for (size_t i = 0; i < layouts_.size(); ++i) {
      const DimMask own = passing & layouts_[i].partial_dims();
      plan.inputs.push_back(input_layout(i, own));
      if (plan.inputs[i] == layouts_[i]) continue;
      ++relayouts;
      plan.bytes += relayout_bytes(in_[i].shape, in_[i].dtype, layouts_[i], plan.inputs[i]);
    }
    if (has_best_ &&
        std::make_pair(plan.bytes, relayouts) >= std::make_pair(best_.bytes, relayouts_)) {
      return;
    }
    for (const std::vector<int>& factors : rule_.out) {
      plan.outputs.push_back(layout_for(factors, pending, kind));
    }
    best_ = std::move(plan);
    relayouts_ = relayouts;
    has_best_ = true;
  }

  const Rule& rule_;
  const Specs& in_;
  const Specs& out_;
  const std::vector<Layout>& layouts_;
  uint32_t parameters_;
  const Mesh& mesh_;
  std::vector<int> dims_;
  std::vector<std::vector<int>> options_;
  std::vector<int> choice_;
  bool has_best_ = false;
  int relayouts_ = 0;
  Propagation best_;
};

}  // namespace

Propagation propagate(const Rule& rule, const Specs& in, const Specs& out,
                      const std::vector<Layout>& layouts, uint32_t parameters) {
  return Search(rule, in, out, layouts, parameters).best();
}

std::string to_string(const Propagation& plan) {
  std::string text;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    text += (i ? " , " : "") + plan.inputs[i].describe();
  }
  text += " -> ";
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    text += (i ? " , " : "") + plan.outputs[i].describe();
  }
  return text;
}

}  // namespace tessera::detail
