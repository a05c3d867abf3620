#include <tessera/framework/mesh/layout_map.hpp>

#include <algorithm>
#include <utility>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/mesh/internal/weight_placement.hpp>

namespace tessera {

using namespace detail;

namespace {

// Paths are a few names long; RE2 would spend seconds and megabytes on compiling a long expression.
constexpr size_t max_match_bytes = 16384;

/// Returns a rule or path as the prefix of an error.
std::string error_prefix(const std::string& match) {
  return match.empty() ? "layout rule" : one_line(match);
}

/// Returns the name of a construct that RE2 lacks, from the part of the expression that RE2
/// rejected; empty if the expression is invalid for another reason.
std::string unsupported_construct(const std::string& match, const std::string& part) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"(?=", "look-ahead"},           {"(?!", "look-ahead"},      {"(?<=", "look-behind"},
      {"(?<!", "look-behind"},         {"(?P=", "back-reference"}, {"(?>", "atomic group"},
      {"(?<", "named group without P"}};
  for (const auto& [opening, name] : names) {
    const bool here = opening.starts_with(part) && match.find(opening) != match.npos;
    if (!part.empty() && here) return str(name, " ", in_quotes(opening));
  }
  const bool back = part.size() == 2 && part[0] == '\\' && '1' <= part[1] && part[1] <= '9';
  return back ? "back-reference " + in_quotes(part) : "";
}

std::shared_ptr<const RE2> compile(const std::string& match) {
  if (match.size() > max_match_bytes) {
    throw LayoutError(error_prefix(match), str("a rule has at most ", max_match_bytes, " bytes"),
                      str(match.size(), " bytes"), "write a shorter expression");
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  auto expression = std::make_shared<const RE2>(match, options);
  if (expression->ok()) return expression;
  const std::string unsupported = unsupported_construct(match, expression->error_arg());
  if (!unsupported.empty()) {
    throw LayoutError(error_prefix(match),
                      "a rule is an RE2 expression, which has no such construct", unsupported,
                      "write the rule without it, for example as several rules");
  }
  throw LayoutError(error_prefix(match), "a rule is a valid RE2 expression",
                    in_quotes(expression->error()),
                    "correct it, with a backslash before each special character of a name");
}

/// Throws LayoutError for an unknown or repeated dimension; errors name `rule` and `key`.
void check_spec(const LayoutSpec& spec, const Mesh& mesh, const std::string& rule,
                const std::string& key) {
  DimMask used = 0;
  for (const AxisSpec& axis : spec) {
    for (const std::string& dim : axis.dims()) {
      const int dim_index = mesh.find(dim);
      if (dim_index < 0) {
        throw LayoutError(rule, key + " names mesh dimension " + in_quotes(dim),
                          "mesh " + mesh.describe(),
                          suggestion(dim, mesh.dim_names()) + " in rule \"" + rule + "\"");
      }
      if (used >> dim_index & 1) {
        throw LayoutError(rule, key + " names a mesh dimension at most once",
                          in_quotes(dim) + " twice in " + to_string(spec),
                          "leave one of the axes unsharded");
      }
      used |= 1u << dim_index;
    }
  }
}

/// Whether every axis of `fine` begins with the mesh dimensions of that axis in `coarse`.
bool refines(const LayoutSpec& fine, const LayoutSpec& coarse) {
  for (size_t axis = 0; axis < coarse.size(); ++axis) {
    const auto& outer = coarse[axis].dims();
    const auto& inner = fine[axis].dims();
    const bool prefix =
        outer.size() <= inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
    if (!prefix) return false;
  }
  return true;
}

/// Returns the layout of a vector along the last axis of `layout`.
Layout last_axis(const Layout& layout) {
  return Layout::from_axes(layout.mesh(), {layout.axes().back()});
}

std::vector<std::string> nearest_three(const std::string& match, std::vector<std::string> paths) {
  std::vector<std::string> close;
  while (close.size() < 3) {
    const std::string next = nearest(match, paths);
    if (next.empty()) break;
    close.push_back(next);
    std::erase(paths, next);
  }
  return close;
}

/// Whether a path equals `match` or is matched in full by its expression.
bool full_match(const std::string& match, const RE2& expression, const std::string& path) {
  return match == path || RE2::FullMatch(path, expression);
}

void require_mesh(const LayoutMap& map) {
  if (map.defined()) return;
  throw StateError("layout map", "a layout map needs a mesh", "a default-constructed LayoutMap",
                   "construct it as LayoutMap(mesh)");
}

}  // namespace

LayoutMap::Slot& LayoutMap::Slot::operator=(LayoutSpec layout) {
  map_.set({.match = match_, .layout = std::move(layout)});
  return *this;
}

LayoutMap::Slot& LayoutMap::Slot::operator=(const Layout& layout) {
  if (!layout.defined() || !(layout.mesh() == map_.mesh_)) {
    throw LayoutError(error_prefix(match_), "a rule's layout is on the mesh of the layout map",
                      layout.defined() ? "mesh " + layout.mesh().describe() : "no layout",
                      "build the layout on the map's mesh");
  }
  return *this = layout.spec();
}

LayoutMap::LayoutMap(const Mesh& mesh, LayoutMapOptions options) : mesh_(mesh), options_(options) {
  require_mesh(*this);
}

/// Throws LayoutError for dimensions that the mesh does not have, that are named twice, or that
/// hold stages.
void LayoutMap::check_dims(const LayoutSpec& spec, const std::string& rule,
                           const std::string& key) const {
  check_spec(spec, mesh_, rule, key);
  if (!pipeline_) return;
  for (const AxisSpec& axis : spec) {
    for (const std::string& dim : axis.dims()) {
      if (dim != pipeline_->stages) continue;
      throw LayoutError(rule,
                        key + " shards no axis over the mesh dimension of a pipeline's stages",
                        in_quotes(dim), "shard it over another dimension");
    }
  }
}

void LayoutMap::check_rule(const LayoutRule& rule) const {
  const std::string where = error_prefix(rule.match);
  check_dims(rule.layout, where, "layout");
  for (const auto& [key, spec] : {std::pair("use", &rule.use), std::pair("slots", &rule.slots)}) {
    if (!*spec) continue;
    check_dims(**spec, where, key);
    if ((*spec)->size() != rule.layout.size()) {
      throw LayoutError(where, str("layout and ", key, " have the same rank"),
                        "layout " + to_string(rule.layout) + ", " + key + " " + to_string(**spec),
                        str("give ", key, " one entry per axis"));
    }
  }
  if (rule.slots && !refines(*rule.slots, rule.layout)) {
    throw LayoutError(where, "slots shards every axis over the mesh dimensions of layout first",
                      "layout " + to_string(rule.layout) + ", slots " + to_string(*rule.slots),
                      "begin each axis of slots with the mesh dimensions of layout");
  }
}

LayoutMap LayoutMap::on_mesh(const Mesh& mesh) const {
  if (mesh.dims() != mesh_.dims()) {
    throw LayoutError("layouts", "the rules of a map are for meshes of the same dimensions",
                      mesh.describe() + " for rules of " + mesh_.describe(),
                      "make a map for the other mesh");
  }
  LayoutMap moved = *this;
  moved.mesh_ = mesh;
  return moved;
}

void LayoutMap::add(LayoutRule rule) {
  for (const LayoutRule& other : rules_) {
    if (other.match != rule.match) continue;
    throw LayoutError(error_prefix(rule.match), "each rule has its own match", "two rules for it",
                      "remove one of the two");
  }
  set(std::move(rule));
}

void LayoutMap::set(LayoutRule rule) {
  require_mesh(*this);
  check_rule(rule);
  auto expression = compile(rule.match);
  const auto same = [&](const LayoutRule& other) { return other.match == rule.match; };
  const auto at = std::find_if(rules_.begin(), rules_.end(), same);
  if (at != rules_.end()) {
    *at = std::move(rule);
    return;
  }
  rules_.push_back(std::move(rule));
  expressions_.push_back(std::move(expression));
}

size_t LayoutMap::index_of(const std::string& match, const char* caller) const {
  std::vector<std::string> known;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].match == match) return i;
    known.push_back(rules_[i].match);
  }
  throw LayoutError(caller, "the layout map has a rule for the path", in_quotes(match),
                    suggestion(match, known));
}

bool LayoutMap::contains(const std::string& match) const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const LayoutRule& rule) { return rule.match == match; });
}

const LayoutRule& LayoutMap::at(const std::string& match) const {
  return rules_[index_of(match, "LayoutMap::at")];
}

void LayoutMap::erase(const std::string& match) {
  const auto index = static_cast<std::ptrdiff_t>(index_of(match, "LayoutMap::erase"));
  rules_.erase(rules_.begin() + index);
  expressions_.erase(expressions_.begin() + index);
}

void LayoutMap::set_data(const std::string& name, LayoutSpec layout) {
  require_mesh(*this);
  check_dims(layout, "data." + name, "layout");
  data_[name] = std::move(layout);
}

void LayoutMap::set_data_names(std::vector<std::string> inputs, std::vector<std::string> outputs) {
  std::vector<std::string> names = {"x", "y", "sample_weight"};
  names.insert(names.end(), inputs.begin(), inputs.end());
  names.insert(names.end(), outputs.begin(), outputs.end());
  for (const auto& [name, spec] : data_) {
    const auto count = std::count(names.begin(), names.end(), name);
    if (count == 1) continue;
    throw LayoutError(error_prefix("data." + name),
                      "data layouts are for x, y, sample_weight, or one input or output by its "
                      "name",
                      count == 0 ? in_quotes(name) : in_quotes(name) + " for both",
                      count == 0 ? suggestion(name, names) : "give one of the two another name");
  }
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
}

bool LayoutMap::matches(size_t rule, const std::string& path) const {
  return full_match(rules_[rule].match, *expressions_[rule], path);
}

int LayoutMap::match(const std::string& path, const char* what) const {
  std::vector<size_t> matching;
  for (size_t rule = 0; rule < rules_.size(); ++rule) {
    if (rules_[rule].match == path) return static_cast<int>(rule);
    if (matches(rule, path)) matching.push_back(rule);
  }
  if (matching.empty()) return -1;
  if (matching.size() > 1 && options_.on_multiple == OnMultiple::error) {
    std::vector<std::string> names;
    for (size_t rule : matching) names.push_back(rules_[rule].match);
    throw LayoutError(error_prefix(path), str("at most one layout rule matches a ", what),
                      "rules " + quoted_list(names),
                      str("narrow one of them, or add a rule with the ", what, "'s exact path"));
  }
  return static_cast<int>(matching[0]);
}

void LayoutMap::check_rank(const LayoutRule& rule, const std::string& path, int64_t rank,
                           const char* what, const std::string& shape) const {
  if (static_cast<int64_t>(rule.layout.size()) == rank) return;
  throw LayoutError(
      error_prefix(path),
      str("rule ", in_quotes(rule.match), " has a layout of rank ", rule.layout.size(), ", the ",
          what, " has rank ", rank),
      "layout " + to_string(rule.layout) + (shape.empty() ? "" : ", shape " + shape),
      str("give the layout one entry per axis of the ", what, ", or narrow the rule"));
}

Placement LayoutMap::apply_rule(int rule_index, const std::string& path, const Shape& shape) const {
  const LayoutRule& rule = rules_[static_cast<size_t>(rule_index)];
  check_rank(rule, path, static_cast<int64_t>(shape.size()), "weight", to_string(shape));
  if (rule.reshard_after_forward && !rule.use) {
    throw LayoutError(error_prefix(path),
                      str("rule ", in_quotes(rule.match), " has reshard, which needs use"),
                      "no use", "add use, the layout to gather the weight to, or remove reshard");
  }
  Placement placement{.shape = shape,
                      .layout = Layout(rule.layout, mesh_),
                      .reshard_after_forward = rule.reshard_after_forward,
                      .reduce_at_end = rule.reduce_at_end,
                      .rule = rule_index};
  if (rule.use) placement.use = Layout(*rule.use, mesh_);
  if (rule.slots) placement.slots = Layout(*rule.slots, mesh_);
  return placement;
}

Placement LayoutMap::find(const std::string& path, const Shape& shape,
                          const Placement* kernel) const {
  require_mesh(*this);
  const int rule = match(path, "weight");
  if (rule >= 0) return apply_rule(rule, path, shape);
  const auto rank = static_cast<int64_t>(shape.size());
  const bool follows =
      kernel && rank == 1 && !kernel->shape.empty() && kernel->shape.back() == shape[0];
  if (!follows) return {.shape = shape, .layout = Layout::replicated(mesh_, rank)};
  Placement placement{.shape = shape,
                      .layout = last_axis(kernel->layout),
                      .reshard_after_forward = kernel->reshard_after_forward,
                      .reduce_at_end = kernel->reduce_at_end};
  if (kernel->use) placement.use = last_axis(*kernel->use);
  if (kernel->slots) placement.slots = last_axis(*kernel->slots);
  return placement;
}

void LayoutMap::fully_shard(FullyShard shard) {
  require_mesh(*this);
  check_dims({shard.over}, "fully_shard", "over");
  if (shard.over.dims().empty()) {
    throw LayoutError("fully_shard", "over names the mesh dimensions that shard weights", "none",
                      suggestion("batch", mesh_.dim_names()));
  }
  fully_shard_ = std::move(shard);
}

bool MemoryOptions::valid() const {
  constexpr std::string_view disk = "disk:";
  return slots.empty() || slots == "host" ||
         (slots.starts_with(disk) && slots.size() > disk.size());
}

void LayoutMap::set_memory(MemoryOptions memory) {
  if (!memory.valid()) {
    throw ConfigError("memory", "slots rest in \"host\" or \"disk:FOLDER\"",
                      in_quotes(memory.slots), "write one of them, or leave slots out");
  }
  memory_ = std::move(memory);
}

Placement LayoutMap::fully_sharded(Placement placement) const {
  if (!fully_shard_ || placement.use || placement.slots) return placement;
  DimMask dims = 0;
  std::vector<int> indices;
  for (const std::string& dim : fully_shard_->over.dims()) {
    indices.push_back(mesh_.find(dim));
    dims |= DimMask{1} << indices.back();
  }
  const Layout whole = placement.layout;
  if (whole.sharded_dims() & dims) return placement;
  int64_t longest = -1;
  const auto shard_extent = [&](int64_t axis) {
    return placement.shape[static_cast<size_t>(axis)] / whole.num_shards(axis);
  };
  for (int64_t axis = 0; axis < whole.rank(); ++axis) {
    if (longest < 0 || shard_extent(axis) > shard_extent(longest)) longest = axis;
  }
  if (longest < 0 || shard_extent(longest) < mesh_.size_of(dims)) return placement;
  std::vector<std::vector<int>> axes = whole.axes();
  std::vector<int>& cut = axes[static_cast<size_t>(longest)];
  cut.insert(cut.end(), indices.begin(), indices.end());
  placement.layout = Layout::from_axes(mesh_, std::move(axes));
  placement.use = whole;
  placement.reshard_after_forward = fully_shard_->reshard_after_forward;
  placement.reduce_at_end = fully_shard_->reduce_at_end;
  return placement;
}

LayoutMap LayoutMap::value_rules(const std::vector<std::string>& weights) const {
  LayoutMap values(mesh_, options_);
  for (size_t rule = 0; rule < rules_.size(); ++rule) {
    const auto matched = [&](const std::string& path) { return matches(rule, path); };
    if (std::any_of(weights.begin(), weights.end(), matched)) continue;
    values.rules_.push_back(rules_[rule]);
    values.expressions_.push_back(expressions_[rule]);
  }
  return values;
}

std::optional<LayoutMap::ValuePlacement> LayoutMap::find_value(const std::string& path,
                                                               int64_t rank) const {
  const int rule_index = match(path, "value");
  if (rule_index < 0) return std::nullopt;
  const LayoutRule& rule = rules_[static_cast<size_t>(rule_index)];
  if (rule.use || rule.slots || rule.reduce_at_end) {
    throw LayoutError(error_prefix(path),
                      str("rule ", in_quotes(rule.match), " places a value and has only a layout"),
                      rule.use     ? "use"
                      : rule.slots ? "slots"
                                   : "reduce",
                      "remove it: it is for weights");
  }
  check_rank(rule, path, rank, "value");
  return ValuePlacement{Layout(rule.layout, mesh_), rule.reshard_after_forward};
}

void LayoutMap::check_all_used(const std::vector<std::string>& paths) const {
  for (size_t rule = 0; rule < rules_.size(); ++rule) {
    const auto matched = [&](const std::string& path) { return matches(rule, path); };
    if (rules_[rule].optional || std::any_of(paths.begin(), paths.end(), matched)) continue;
    const std::vector<std::string> close = nearest_three(rules_[rule].match, paths);
    throw LayoutError(error_prefix(rules_[rule].match),
                      "a layout rule matches at least one weight or value of the model",
                      paths.empty()   ? "a model without weights"
                      : close.empty() ? "paths " + quoted_list(paths, 8)
                                      : "nearest paths " + quoted_list(close),
                      "correct the rule, remove it or make it optional");
  }
}

void LayoutMap::set_pipeline(PipelineParallelOptions pipeline) {
  require_mesh(*this);
  const int dim = mesh_.find(pipeline.stages);
  if (dim < 0) {
    throw LayoutError("pipeline", "stages names mesh dimension " + in_quotes(pipeline.stages),
                      "mesh " + mesh_.describe(), suggestion(pipeline.stages, mesh_.dim_names()));
  }
  check_pipeline_options(pipeline, mesh_.size_of(DimMask{1} << dim));
  std::vector<std::shared_ptr<const RE2>> expressions;
  for (const StageRule& rule : pipeline.rules) expressions.push_back(compile(rule.match));
  LayoutMap changed = *this;
  changed.pipeline_ = std::move(pipeline);
  changed.stage_expressions_ = std::move(expressions);
  for (const LayoutRule& rule : rules_) changed.check_rule(rule);
  for (const auto& [name, spec] : data_) changed.check_dims(spec, "data." + name, "layout");
  if (fully_shard_) changed.check_dims({fully_shard_->over}, "fully_shard", "over");
  *this = std::move(changed);
}

std::optional<int64_t> LayoutMap::find_stage(const std::string& path) const {
  if (!pipeline_) return std::nullopt;
  const std::vector<StageRule>& rules = pipeline_->rules;
  std::optional<size_t> found;
  for (size_t r = 0; r < rules.size(); ++r) {
    if (rules[r].match == path) return rules[r].stage;
    if (!full_match(rules[r].match, *stage_expressions_[r], path)) continue;
    if (!found) found = r;
    if (rules[r].stage == rules[*found].stage || options_.on_multiple == OnMultiple::first)
      continue;
    throw LayoutError(error_prefix(path), "rules give one stage to a path",
                      str("stage ", rules[*found].stage, " by ", in_quotes(rules[*found].match),
                          ", ", rules[r].stage, " by ", in_quotes(rules[r].match)),
                      "narrow one of them, or add a rule with the exact path");
  }
  if (!found) return std::nullopt;
  return rules[*found].stage;
}

void LayoutMap::check_stages_used(const std::vector<std::string>& paths) const {
  for (size_t r = 0; r < stage_expressions_.size(); ++r) {
    const std::string& match = pipeline_->rules[r].match;
    const auto matched = [&](const std::string& path) {
      return full_match(match, *stage_expressions_[r], path);
    };
    if (std::any_of(paths.begin(), paths.end(), matched)) continue;
    const std::vector<std::string> close = nearest_three(match, paths);
    throw LayoutError(
        "stage rule " + in_quotes(match), "a stage rule matches a layer or weight of the model",
        close.empty() ? "paths " + quoted_list(paths, 8) : "nearest paths " + quoted_list(close),
        "correct the rule or remove it");
  }
}

void LayoutMap::rematerialize(RematRule rule) {
  require_mesh(*this);
  remat_expressions_.push_back(compile(rule.match));
  remat_rules_.push_back(std::move(rule));
}

const RematRule* LayoutMap::find_remat(const std::string& path) const {
  for (size_t r = 0; r < remat_rules_.size(); ++r) {
    if (full_match(remat_rules_[r].match, *remat_expressions_[r], path)) return &remat_rules_[r];
  }
  return nullptr;
}

void LayoutMap::check_remat_used(const std::vector<std::string>& layers) const {
  for (size_t r = 0; r < remat_rules_.size(); ++r) {
    const auto matched = [&](const std::string& path) {
      return full_match(remat_rules_[r].match, *remat_expressions_[r], path);
    };
    if (std::any_of(layers.begin(), layers.end(), matched)) continue;
    const std::vector<std::string> close = nearest_three(remat_rules_[r].match, layers);
    throw LayoutError(
        "remat rule " + in_quotes(remat_rules_[r].match),
        "a remat rule matches at least one layer of the model",
        close.empty() ? "layers " + quoted_list(layers, 8) : "nearest layers " + quoted_list(close),
        "correct the rule or remove it");
  }
}

int64_t LayoutMap::microbatches_of(int64_t rows) const {
  if (!pipeline_) return 1;
  const int batch = mesh_.find("batch");
  int64_t shards = batch < 0 ? 1 : mesh_.dim_size(batch);
  for (const auto& [name, spec] : data_) {
    if (!spec.empty()) shards = std::max(shards, Layout(spec, mesh_).num_shards(0));
  }
  return std::clamp<int64_t>(rows / shards, 1, pipeline_->microbatches);
}

Layout LayoutMap::data_layout(const std::string& name, int64_t rank, size_t index) const {
  require_mesh(*this);
  const std::vector<std::string>* const names = name == "x"   ? &inputs_
                                                : name == "y" ? &outputs_
                                                              : nullptr;
  auto own = data_.end();
  if (names && index < names->size()) own = data_.find((*names)[index]);
  if (own == data_.end()) own = data_.find(name);
  if (own != data_.end()) {
    if (static_cast<int64_t>(own->second.size()) == rank) return Layout(own->second, mesh_);
    throw LayoutError(
        "data." + own->first,
        str("the data layout has rank ", own->second.size(), ", the batch has rank ", rank),
        "layout " + to_string(own->second), "give it one entry per axis of the batch");
  }
  if (rank < 1) return Layout::replicated(mesh_, rank);
  AxisSpec first = nullptr;
  const auto x = data_.find("x");
  if (x != data_.end()) {
    if (!x->second.empty()) first = x->second[0];
  } else if (mesh_.find("batch") >= 0) {
    first = "batch";
  }
  LayoutSpec spec(static_cast<size_t>(rank), nullptr);
  spec[0] = first;
  return Layout(spec, mesh_);
}

std::string LayoutMap::describe() const {
  std::string text;
  for (const LayoutRule& rule : rules_) {
    text += error_prefix(rule.match) + ": " + to_string(rule.layout);
    if (rule.use) text += ", use " + to_string(*rule.use);
    if (rule.slots) text += ", slots " + to_string(*rule.slots);
    if (rule.reshard_after_forward) text += ", reshard after_forward";
    if (rule.reduce_at_end) text += ", reduce end";
    text += rule.optional ? ", optional\n" : "\n";
  }
  const WeightPlacement* placement = weight_placement_of(mesh_);
  if (placement) text += placement->describe() + "\n";
  for (const auto& [name, spec] : data_) text += "data " + name + ": " + to_string(spec) + "\n";
  if (!pipeline_) return text;
  text += "pipeline: " + detail::describe(*pipeline_) + "\n";
  for (const StageRule& rule : pipeline_->rules) {
    text += error_prefix(rule.match) + str(": stage ", rule.stage, "\n");
  }
  return text;
}

}  // namespace tessera
