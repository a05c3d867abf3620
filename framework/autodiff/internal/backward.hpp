#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tessera/framework/autodiff/internal/contributions.hpp>
#include <tessera/framework/autodiff/tape.hpp>

namespace tessera::detail {

/// One walk back over a tape's entries.
class TapeWalk {
 public:
  TapeWalk(GradientTape& tape, const std::vector<DTensor>& sources, const GradientOptions& options);
  std::vector<DTensor> run(const DTensor& target);

 private:
  using Entry = GradientTape::Entry;
  using Recipe = GradientTape::Recipe;
  using Versions = GradientTape::Versions;
  /// A value that is made again, from its first reader on the way back to the last.
  struct Remade {
    DTensor value;
    int64_t readers = 0;  ///< entries ahead that saved it
  };

  /// Finds what depends on a source, and counts the operations that will contribute to it, and
  /// those that read a value which is made again.
  void mark(const Entry& entry);
  void release(uint64_t id);
  void ready(size_t s);
  void visit(Entry& entry);
  /// What is pending behind a value that was moved goes straight to where the value came from: a
  /// reduce-scatter where the value was gathered, not an all-reduce and a slice.
  void hand_on(const Entry& entry);
  /// Throws StateError for an operation that has no derivative, or Variables that changed.
  static void check(const Entry& entry);
  static void check_versions(const OpInfo& info, const Versions& versions);
  /// Fills in an input that was not kept. All operations that read it see the same.
  void make_again(Entry& entry, size_t i);
  /// Of values that are made again keeps those that operations further ahead read.
  void let_go(Entry& entry);
  DTensor result(const DTensor& source) const;

  GradientTape& tape_;
  const std::vector<DTensor>& sources_;
  const GradientOptions& options_;
  std::vector<int64_t> waiting_;
  std::unordered_map<uint64_t, std::vector<size_t>> source_of_;
  std::unordered_set<uint64_t> wanted_;
  std::unordered_map<uint64_t, Contributions> gradients_;
  std::unordered_map<uint64_t, Remade> remade_;
};

}  // namespace tessera::detail
