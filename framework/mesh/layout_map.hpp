#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/layout.hpp>

namespace re2 {
class RE2;
}

namespace tessera {

/// What a LayoutMap does with a path that several expressions match.
enum class OnMultiple : uint8_t { error, first };

/// The options of LayoutMap.
struct LayoutMapOptions {
  /// `error` throws, as Keras 3 does; `first` takes the first rule in order, as tf.keras does.
  OnMultiple on_multiple = OnMultiple::error;
};

/// The layout of the weights whose path is `match` or is matched, as a whole, by the RE2 expression
/// `match`. A rule that matches no weight of the model places values that its layers compute:
/// "PATH/input" is what the layer at PATH is called on ("PATH/input_1" the second input, and so
/// on), "PATH/output" what it gives, and "PATH/NAME" a value that the layer itself names.
struct LayoutRule {
  std::string match = {};
  LayoutSpec layout = {};
  /// What ops gather the weight to, while it rests in `layout` (fully sharded data parallelism).
  /// For weights alone, as is `slots`.
  std::optional<LayoutSpec> use = std::nullopt;
  /// Where optimizer slots rest: `layout`, cut further (ZeRO).
  std::optional<LayoutSpec> slots = std::nullopt;
  /// Whether what was gathered, a weight's `use` or a value that is placed, is let go behind the
  /// forward pass and gathered anew in the backward pass: less memory for more communication, and
  /// the same numbers (reshard_after_forward of PyTorch's fully_shard).
  bool reshard_after_forward = false;
  /// Whether the rule may match nothing at all.
  bool optional = false;
  bool operator==(const LayoutRule&) const = default;
};

/// Where one weight goes.
struct Placement {
  Shape shape = {};
  Layout layout = {};
  std::optional<Layout> use = std::nullopt;
  std::optional<Layout> slots = std::nullopt;
  bool reshard_after_forward = false;
  /// Position of the rule in LayoutMap::rules(), -1 where none matched.
  int rule = -1;
};

/// Layouts of a model's weights and of what its layers compute by their path, and of its data by
/// name (keras.distribution.LayoutMap):
///
///     LayoutMap layouts(mesh);
///     layouts["hidden/kernel"] = {unsharded, "model"};
///     layouts[".*/gamma"] = {unsharded};
///     layouts["hidden/output"] = {"batch", unsharded};
///
/// A weight's layout is that of the rule with its exact path; else of the one expression that
/// matches the whole path; else, for a vector as long as the last axis of its layer's kernel, the
/// layout of that axis; else replicated. Expressions are RE2's: no look-around, no back-references.
class LayoutMap {
 public:
  /// Where one value goes.
  struct ValuePlacement {
    Layout layout = {};
    bool reshard_after_forward = false;
  };

  /// What `layouts["path"]` returns: assigning a layout to it sets the rule, replacing any before.
  class Slot {
   public:
    /// Throws LayoutError as LayoutMap::add does, except for a repeated rule.
    Slot& operator=(LayoutSpec layout);
    /// Throws LayoutError also if `layout` lies on another mesh.
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
  const LayoutMapOptions& options() const { return options_; }
  const std::vector<LayoutRule>& rules() const { return rules_; }
  const std::map<std::string, LayoutSpec>& data() const { return data_; }

  Slot operator[](const std::string& match) { return Slot(*this, match); }

  /// Appends a rule. Throws LayoutError if a rule for the same `match` exists, the expression is
  /// invalid, a mesh dimension is unknown or used twice, the ranks of `layout`, `use` and `slots`
  /// differ, or `slots` does not refine `layout`.
  void add(LayoutRule rule);

  /// Sets how batches of "x", "y" or "sample_weight" are cut, or of one input or output of the
  /// model by its name. Throws LayoutError for an unknown or repeated mesh dimension.
  void set_data(const std::string& name, LayoutSpec layout);

  /// Says what a model's inputs and outputs are called, in their order. Throws LayoutError if data
  /// are placed whose name is none of these, or is that of an input and of an output.
  void set_data_names(std::vector<std::string> inputs, std::vector<std::string> outputs);

  /// Where the weight `path` of shape `shape` goes; `kernel` is what find() returned for the
  /// layer's kernel, null if it has none. Throws LayoutError if several expressions match or the
  /// rule's rank is not the weight's, or it says `reshard` of a weight that is not gathered.
  Placement find(const std::string& path, const Shape& shape,
                 const Placement* kernel = nullptr) const;

  /// The rules that match none of `weights`, the paths of all weights of a model: those for values.
  /// Throws LayoutError for one with `use` or `slots`.
  LayoutMap value_rules(const std::vector<std::string>& weights) const;
  /// Where the value at `path` with `rank` axes goes, by the rules of value_rules(); nothing if
  /// none matches. Throws LayoutError if several match or the rule's rank is another.
  std::optional<ValuePlacement> find_value(const std::string& path, int64_t rank) const;

  /// Throws LayoutError, with the nearest paths, if a rule that is not optional matches none of
  /// `paths`, the weights and values of the whole model.
  void check_all_used(const std::vector<std::string>& paths) const;

  /// How a batch of "x", "y" or "sample_weight" with `rank` axes is cut; of several inputs or
  /// outputs that of this `index`, by its own name if data are placed by it. Without an entry of
  /// its own, axis 0 goes where axis 0 of "x" goes; without one for "x", to the mesh dimension
  /// "batch" if there is one. Throws LayoutError if the entry has another rank.
  Layout data_layout(const std::string& name, int64_t rank, size_t index = 0) const;

  /// One line per rule and data entry: "hidden/kernel: (unsharded, model)".
  std::string describe() const;

 private:
  int match(const std::string& path, const char* what) const;
  bool matches(size_t rule, const std::string& path) const;
  void set(LayoutRule rule);
  void check_rank(const LayoutRule& rule, const std::string& path, int64_t rank, const char* what,
                  const std::string& shape = "") const;
  Placement place(int rule, const std::string& path, const Shape& shape) const;

  Mesh mesh_;
  LayoutMapOptions options_;
  std::vector<LayoutRule> rules_;
  std::vector<std::shared_ptr<const re2::RE2>> expressions_;
  std::map<std::string, LayoutSpec> data_;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace tessera
