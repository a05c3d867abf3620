#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/layout.hpp>
#include <tessera/framework/mesh/pipeline_options.hpp>
#include <tessera/framework/mesh/remat_rule.hpp>

namespace re2 {
class RE2;
}

namespace tessera {

/// How a LayoutMap treats a path that several expressions match.
enum class OnMultiple : uint8_t { error, first };

/// The options of LayoutMap.
struct LayoutMapOptions {
  /// `error` throws, as Keras 3 does; `first` takes the first rule in order, as tf.keras does.
  OnMultiple on_multiple = OnMultiple::error;
  /// A map with rules warns of a weight of at least as many bytes that no rule matches and every
  /// device of the mesh keeps in full; 0: never.
  int64_t warn_of_replicated_bytes = int64_t{256} << 20;
};

/// Places the weights whose path equals `match`, or is matched in full by it as an RE2 expression.
/// A rule that matches no weight of the model places values that the model's layers compute:
/// "PATH/input" is the input of the layer at PATH ("PATH/input_1" its second input, and so on),
/// "PATH/output" its output, and "PATH/NAME" a value that the layer names.
struct LayoutRule {
  std::string match = {};
  LayoutSpec layout = {};
  /// Layout to which a weight stored in `layout` is gathered before operations use it (fully
  /// sharded data parallelism). Weights only.
  std::optional<LayoutSpec> use = std::nullopt;
  /// Layout of the optimizer slots: `layout`, sharded over further dimensions (ZeRO). Weights only.
  std::optional<LayoutSpec> slots = std::nullopt;
  /// Whether a weight in `use`, or a placed value, is released after the forward pass and resharded
  /// again in the backward pass: less memory, more communication, equal results
  /// (reshard_after_forward of PyTorch's fully_shard, whose default is true).
  bool reshard_after_forward = false;
  /// Whether the weight's gradient stays whole until the optimizer's update, which reduces it
  /// (ZeRO's first stage), instead of being reduced as soon as it is ready: more memory, equal
  /// results. Weights only.
  bool reduce_at_end = false;
  /// Whether the rule may match nothing.
  bool optional = false;
  bool operator==(const LayoutRule&) const = default;
};

/// How LayoutMap::fully_shard() shards weights.
struct FullyShard {
  AxisSpec over = {};                 ///< mesh dimensions over which each weight is sharded
  bool reshard_after_forward = true;  ///< LayoutRule::reshard_after_forward
  bool reduce_at_end = false;         ///< LayoutRule::reduce_at_end
  bool operator==(const FullyShard&) const = default;
};

/// The places of training state that no operation uses.
struct MemoryOptions {
  /// The optimizer's slots between updates: "" with their weights; "host": in the host's memory, if
  /// the weights are on GPUs; "disk:FOLDER": on disk, in files without a name, which are gone when
  /// the process ends in any way. An update has the slots of two weights in memory. Results are
  /// equal to the bit. Parameter servers keep theirs in memory.
  std::string slots = "";
  /// Whether `slots` is one of these.
  bool valid() const;
  bool operator==(const MemoryOptions&) const = default;
};

/// The layouts of one weight.
struct Placement {
  Shape shape = {};
  Layout layout = {};
  std::optional<Layout> use = std::nullopt;
  std::optional<Layout> slots = std::nullopt;
  bool reshard_after_forward = false;
  bool reduce_at_end = false;
  std::string slots_in = {};  ///< MemoryOptions::slots
  std::string rests_in = {};  ///< where a slot itself rests: "host" or "disk:FOLDER"
  /// Position of the rule in LayoutMap::rules(), -1 if none matched.
  int rule = -1;
};

/// Layouts of a model's weights and values by path, and of its data by name
/// (keras.distribution.LayoutMap):
///
///     LayoutMap layouts(mesh);
///     layouts["hidden/kernel"] = {unsharded, "model"};
///     layouts[".*/gamma"] = {unsharded};
///     layouts["hidden/output"] = {"batch", unsharded};
///
/// A weight takes its layer's own layout argument, if given; else the rule with its exact path;
/// else the expression that matches its full path (of several: see OnMultiple); else, if it is a
/// vector as long as the last axis of its layer's kernel, the layout of that axis; else it is
/// replicated. Unlike Keras, an expression must match the full path, and assigning to a path again
/// replaces its rule. Expressions are RE2's: no look-around, no back-references.
class LayoutMap {
 public:
  /// The layout of one value.
  struct ValuePlacement {
    Layout layout = {};
    bool reshard_after_forward = false;
  };

  /// The result of `layouts["path"]`: assigning a layout to it sets or replaces the rule.
  class Slot {
   public:
    /// Throws LayoutError like LayoutMap::add, except for a repeated rule.
    Slot& operator=(LayoutSpec layout);
    /// Throws LayoutError also if `layout` is of another mesh.
    Slot& operator=(const Layout& layout);

   private:
    friend class LayoutMap;
    Slot(LayoutMap& map, std::string match) : map_(map), match_(std::move(match)) {}
    LayoutMap& map_;
    std::string match_;
  };

  LayoutMap() = default;
  explicit LayoutMap(const Mesh& mesh, LayoutMapOptions options = {});

  bool defined() const { return mesh_.defined(); }
  const Mesh& mesh() const { return mesh_; }
  /// Returns these rules for a mesh of the same dimensions, whose devices other processes hold.
  /// Throws LayoutError for a mesh of other dimensions.
  LayoutMap on_mesh(const Mesh& mesh) const;
  const LayoutMapOptions& options() const { return options_; }
  const std::vector<LayoutRule>& rules() const { return rules_; }
  const std::map<std::string, LayoutSpec>& data() const { return data_; }

  Slot operator[](const std::string& match) { return Slot(*this, match); }

  // The rules as a dictionary (keras.distribution.LayoutMap), in the order of rules().
  size_t size() const { return rules_.size(); }
  auto begin() const { return rules_.begin(); }
  auto end() const { return rules_.end(); }
  /// Whether there is a rule for `match` itself; find() is for the paths that a rule matches.
  bool contains(const std::string& match) const;
  /// Returns the rule for `match` itself. Throws LayoutError naming the nearest one.
  const LayoutRule& at(const std::string& match) const;
  /// Removes the rule for `match`. Throws LayoutError naming the nearest one.
  void erase(const std::string& match);

  /// Appends a rule. Throws LayoutError if a rule for the same `match` exists, the expression is
  /// invalid, a mesh dimension is unknown or used twice, the ranks of `layout`, `use` and `slots`
  /// differ, or `slots` is not `layout` sharded over further dimensions.
  void add(LayoutRule rule);

  /// Shards every trainable weight, its gradient and its optimizer slots over the mesh dimensions
  /// `shard.over`, and gathers a weight when operations use it: fully sharded data parallelism
  /// without rules (PyTorch's fully_shard, DeepSpeed's ZeRO). Of a weight's axes the one with the
  /// longest shards is cut, the first of equal ones. A weight keeps a layout, of a rule or its
  /// layer, that has `use` or `slots` or names one of the dimensions; a weight whose axes are
  /// shorter than the number of devices stays whole. Replaces an earlier call. Throws LayoutError
  /// for an unknown or repeated dimension, or none.
  void fully_shard(FullyShard shard);
  void fully_shard(const AxisSpec& over) { fully_shard(FullyShard{over}); }
  const std::optional<FullyShard>& fully_shard() const { return fully_shard_; }
  /// Returns a weight's layouts after fully_shard().
  Placement fully_sharded(Placement placement) const;

  /// Sets where slots rest. Throws ConfigError for a place that is not one of MemoryOptions.
  void set_memory(MemoryOptions memory);
  const MemoryOptions& memory() const { return memory_; }

  /// Trains the model in stages, on the positions of a mesh dimension over which nothing is
  /// sharded. Replaces an earlier call. Throws ConfigError for options that cannot be, and
  /// LayoutError for an unknown dimension, one that a layout of the map names, or an invalid rule.
  void set_pipeline(PipelineParallelOptions pipeline);
  const std::optional<PipelineParallelOptions>& pipeline() const { return pipeline_; }
  /// Returns the microbatches of a batch of `rows` rows: those of the pipeline, or fewer, so that
  /// each has a row for every shard of the data; at least 1. Without a pipeline 1.
  int64_t microbatches_of(int64_t rows) const;
  /// Returns the stage that the pipeline's rules give to the path of a weight or layer. A rule with
  /// the exact path comes first. Throws LayoutError if several expressions give different stages
  /// under OnMultiple::error; otherwise the first counts.
  std::optional<int64_t> find_stage(const std::string& path) const;
  /// Throws LayoutError, naming the nearest paths, if one of the pipeline's rules matches none of
  /// `paths`, the paths of all layers and weights of the model.
  void check_stages_used(const std::vector<std::string>& paths) const;

  /// Sets whether training, evaluation and prediction have the same bits on any number of processes
  /// (CompileOptions::world_size_invariant).
  void set_world_size_invariant(bool invariant) { world_size_invariant_ = invariant; }
  bool world_size_invariant() const { return world_size_invariant_; }

  /// Adds a rule for layers of which the backward pass computes inner values again instead of
  /// saving them; the first rule that matches counts. Throws LayoutError for an invalid expression.
  void rematerialize(RematRule rule);
  const std::vector<RematRule>& remat_rules() const { return remat_rules_; }
  /// Returns the first of remat_rules() that matches the path of a layer; null if none does.
  const RematRule* find_remat(const std::string& path) const;
  /// Throws LayoutError, naming the nearest paths, if one of remat_rules() matches none of
  /// `layers`, the paths of all layers of the model.
  void check_remat_used(const std::vector<std::string>& layers) const;

  /// Sets the layout of batches of "x", "y" or "sample_weight", or of the model's input or output
  /// called `name`. Throws LayoutError for an unknown or repeated mesh dimension.
  void set_data(const std::string& name, LayoutSpec layout);

  /// Sets the names of the model's inputs and outputs, in order. Throws LayoutError if a data entry
  /// has an unknown name, or one that both an input and an output have.
  void set_data_names(std::vector<std::string> inputs, std::vector<std::string> outputs);

  /// Returns the layouts of the weight `path` of shape `shape`; `kernel` is the result of find()
  /// for the layer's kernel, null if it has none. Throws LayoutError if several expressions match
  /// under OnMultiple::error, the ranks of rule and weight differ, or the rule has
  /// reshard_after_forward without `use`.
  Placement find(const std::string& path, const Shape& shape,
                 const Placement* kernel = nullptr) const;

  /// Returns a map of only the rules that match none of `weights`, the paths of all weights of the
  /// model: the rules for values.
  LayoutMap value_rules(const std::vector<std::string>& weights) const;
  /// Returns the layout of the value at `path` with `rank` axes, or nothing if no rule matches. To
  /// be called on the result of value_rules(). Throws LayoutError if several match under
  /// OnMultiple::error, the rule has another rank, or it has `use` or `slots`.
  std::optional<ValuePlacement> find_value(const std::string& path, int64_t rank) const;

  /// Throws LayoutError, naming the nearest paths, if a rule that is not optional matches none of
  /// `paths`, the paths of all weights and values of the model.
  void check_all_used(const std::vector<std::string>& paths) const;

  /// Returns the layout of a batch of "x", "y" or "sample_weight" with `rank` axes. `index` is the
  /// number of the input or output; an entry under its own name takes precedence. Without an entry,
  /// axis 0 is sharded like axis 0 of "x"; without an entry for "x", over the mesh dimension
  /// "batch" if there is one. Throws LayoutError if the entry has another rank.
  Layout data_layout(const std::string& name, int64_t rank, size_t index = 0) const;

  /// One line per rule and data entry: "hidden/kernel: (unsharded, model)".
  std::string describe() const;

 private:
  int match(const std::string& path, const char* what) const;
  bool matches(size_t rule, const std::string& path) const;
  void set(LayoutRule rule);
  size_t index_of(const std::string& match, const char* caller) const;
  void check_rank(const LayoutRule& rule, const std::string& path, int64_t rank, const char* what,
                  const std::string& shape = "") const;
  Placement apply_rule(int rule, const std::string& path, const Shape& shape) const;
  void check_dims(const LayoutSpec& spec, const std::string& rule, const std::string& key) const;
  void check_rule(const LayoutRule& rule) const;

  Mesh mesh_;
  LayoutMapOptions options_;
  std::vector<LayoutRule> rules_;
  std::vector<std::shared_ptr<const re2::RE2>> expressions_;
  std::vector<RematRule> remat_rules_;
  std::vector<std::shared_ptr<const re2::RE2>> remat_expressions_;
  std::optional<PipelineParallelOptions> pipeline_;
  std::vector<std::shared_ptr<const re2::RE2>> stage_expressions_;
  std::optional<FullyShard> fully_shard_;
  MemoryOptions memory_;
  bool world_size_invariant_ = false;
  std::map<std::string, LayoutSpec> data_;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace tessera
