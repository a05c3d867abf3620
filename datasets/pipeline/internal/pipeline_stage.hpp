#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>

namespace tessera::detail {

/// How many elements there are where there is no end.
inline constexpr int64_t no_end = std::numeric_limits<int64_t>::max();

/// What the elements of an epoch follow from, and how they are read.
struct PipelineReading {
  uint64_t pass = 0;       ///< number of the epoch, or what a repetition makes of it
  LayoutMap layouts = {};  ///< which rows of a batch are read; undefined: all
  int64_t ahead = 1;       ///< how far apart elements lie that are asked for at a time
};

/// The elements of one pass over a stage.
class PipelineElements {
 public:
  virtual ~PipelineElements() = default;
  /// How many there are; absent where a stream does not tell.
  virtual std::optional<int64_t> size() const = 0;
  /// The elements of these numbers, in this order, of tensors that nobody else changes; fewer where
  /// a stream has ended before. May be called from several threads at a time.
  virtual std::vector<Examples> get(std::span<const int64_t> numbers) const = 0;
  /// A number that is this element's in every pass and no other's; absent where elements differ
  /// between passes in more than their order.
  virtual std::optional<int64_t> original(int64_t number) const = 0;
};

/// A step in which a pipeline makes elements of those of the stages before. Never changes, but for
/// what it remembers.
class PipelineStage {
 public:
  /// `kind` is what users call it, "map".
  PipelineStage(std::string kind, std::vector<std::shared_ptr<const PipelineStage>> before);
  virtual ~PipelineStage() = default;

  virtual std::shared_ptr<const PipelineElements> open(const PipelineReading& reading) const = 0;
  /// Elements of a pass, if that is known without reading.
  virtual std::optional<int64_t> count() const { return before().count(); }
  /// Whether elements are batches.
  virtual bool batched() const { return before().batched(); }
  /// Whether elements come in an order of their own, and may end anywhere.
  virtual bool is_stream() const { return before().is_stream(); }
  /// What the data are called.
  virtual std::string data_name() const { return before().data_name(); }
  /// Elements that are made at a time.
  virtual int64_t threads() const;
  /// Elements that are made before they are needed.
  virtual int64_t ahead() const;
  /// Shapes of the inputs' rows.
  virtual std::vector<Shape> input_shapes() const { return before().input_shapes(); }
  /// The stages so far as one text, by which a file of elements is known again.
  std::string text() const;
  /// How many stages came before on the longest way, the data not counted.
  int64_t place() const { return place_; }

  /// "data, map at stage 2".
  std::string where() const;
  /// "data, map at stage 2, row 7".
  std::string where(int64_t number) const;

 protected:
  const PipelineStage& before(size_t i = 0) const { return *before_[i]; }
  /// What the stage itself was given, for text().
  virtual std::string given() const { return {}; }
  /// Shapes of the inputs of the first element, which is made for this once.
  std::vector<Shape> first_input_shapes() const;
  /// Throws ConfigError if the stage before is a stream, its elements have no end, or are batches.
  void check_any_order() const;
  void check_has_end() const;
  void check_rows() const;

 private:
  std::string kind_;
  std::vector<std::shared_ptr<const PipelineStage>> before_;
  int64_t place_ = 0;
  mutable std::mutex mutex_;
  mutable std::optional<std::vector<Shape>> input_shapes_;
};

using PipelineStagePtr = std::shared_ptr<const PipelineStage>;

/// Looks at elements [0, size) on so many threads, in parts that `visit` is given. Rethrows the
/// error of the first part that has one.
void visit_all(int64_t size, int64_t threads,
               const std::function<void(std::span<const int64_t>)>& visit);

/// Keeps ATen from making a pool of threads of its own for the calling one.
void compute_alone();

/// In a catch clause: throws the caught error with `where` before it; one that is not Tessera's
/// becomes an Error of one line.
[[noreturn]] void rethrow_in_stage(const std::string& where);

/// Checks an option of a stage.
void check_at_least(const std::string& where, const std::string& option, int64_t value,
                    int64_t least);

}  // namespace tessera::detail
