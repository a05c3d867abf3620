#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tessera/framework/autodiff/internal/contributions.hpp>
#include <tessera/framework/autodiff/internal/tape_record.hpp>

namespace tessera::detail {

/// The backward pass: one reverse walk over a tape's entries.
class TapeWalk {
 public:
  TapeWalk(TapeRecord& record, const std::vector<DTensor>& sources, const GradientOptions& options);
  std::vector<DTensor> run(const DTensor& target);

 private:
  using Entry = TapeRecord::Entry;
  using Recipe = TapeRecord::Recipe;
  using RecipePtr = TapeRecord::RecipePtr;
  using Versions = TapeRecord::Versions;
  /// A rematerialized value, kept from its first reader in the backward pass to its last.
  struct Rematerialized {
    DTensor value;
    int64_t readers = 0;  ///< number of entries and recipes, still to come, that read it
  };

  /// Marks the outputs of an entry that depends on a source. Counts the contributions to each
  /// source, and the readers of each rematerialized value.
  void mark(const Entry& entry);
  /// Whether a result of the recipe, not saved later, has readers.
  bool is_needed(const RecipePtr& recipe) const;
  /// Counts the recipes that will read each rematerialized value; drops those that nothing needs.
  void count_recipes();
  /// Counts down the contributions that a source still waits for; at 0 it is ready.
  void finish_contribution(uint64_t id);
  /// Passes the gradient of source s to on_ready.
  void ready(size_t s);
  void visit(Entry& entry);
  /// Whether an entry casts a source to a narrow dtype, which the source's gradient may keep.
  bool keeps_narrow(const Entry& entry) const;
  /// Moves the gradient of a relayout's result straight to the layout of its input: if the input
  /// was all-gathered, a pending gradient is reduce-scattered, not all-reduced and sliced.
  void forward_gradient(const Entry& entry);
  /// Throws StateError for an operation without a derivative, or a Variable that was assigned since
  /// the forward pass.
  static void check(const Entry& entry);
  static void check_versions(const OpInfo& info, const Versions& versions);
  /// Gives an entry the input or output at index i of both, if it is rematerialized.
  void rematerialize(Entry& entry, size_t i);
  /// Returns a value that was not saved. Computes it again, and first what that needs, once for all
  /// operations that read it.
  DTensor rematerialized(uint64_t id);
  /// Counts down the readers of a rematerialized value; at 0 it is released, and what only its
  /// recipe would have read.
  void release(uint64_t id);
  /// Releases an entry's rematerialized values, except those that are yet to be read.
  void release_saved(Entry& entry);
  DTensor result(const DTensor& source) const;

  TapeRecord& record_;
  const std::vector<DTensor>& sources_;
  const GradientOptions& options_;
  std::vector<int64_t> waiting_;
  std::unordered_map<uint64_t, std::vector<size_t>> source_of_;
  std::unordered_set<uint64_t> dependent_;
  std::unordered_map<uint64_t, Contributions> gradients_;
  std::unordered_map<uint64_t, Rematerialized> rematerialized_;
  std::unordered_set<const Recipe*> done_;  ///< recipes that have run or will not
};

}  // namespace tessera::detail
