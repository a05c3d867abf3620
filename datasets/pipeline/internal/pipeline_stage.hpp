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

/// Number of elements of an endless pipeline.
inline constexpr int64_t no_end = std::numeric_limits<int64_t>::max();

/// The pass that a stage is opened for, and how its elements are read.
struct PassOptions {
  uint64_t pass = 0;       ///< epoch number, mixed with the repetition's inside repeat()
  LayoutMap layouts = {};  ///< selects the rows of a batch that are read; undefined: all
  int64_t ahead = 1;       ///< maximum distance between element numbers requested concurrently
};

/// The elements of one pass over a stage.
class PipelineElements {
 public:
  virtual ~PipelineElements() = default;
  /// Returns the number of elements; absent for a stream of unknown length.
  virtual std::optional<int64_t> size() const = 0;
  /// Returns the elements with these numbers, in this order; fewer if a stream ends before. Nobody
  /// else changes their tensors. Thread-safe.
  virtual std::vector<Examples> get(std::span<const int64_t> numbers) const = 0;
  /// Returns a number that identifies this element in every pass; absent if passes differ in more
  /// than the order of their elements.
  virtual std::optional<int64_t> original(int64_t number) const = 0;
};

/// The source of a pipeline or a transform of the stages before it. Immutable but for its caches.
class PipelineStage {
 public:
  /// `kind` is the name of the method that users call, such as "map".
  PipelineStage(std::string kind, std::vector<std::shared_ptr<const PipelineStage>> before);
  virtual ~PipelineStage() = default;

  virtual std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const = 0;
  /// Returns the number of elements of a pass, if known without reading.
  virtual std::optional<int64_t> count() const { return before().count(); }
  /// Whether elements are batches.
  virtual bool batched() const { return before().batched(); }
  /// Whether elements come in a fixed order and may end at any point.
  virtual bool is_stream() const { return before().is_stream(); }
  /// Returns the name of the data.
  virtual std::string data_name() const { return before().data_name(); }
  /// Returns the number of elements that are made concurrently.
  virtual int64_t threads() const;
  /// Returns the number of elements that are prefetched.
  virtual int64_t ahead() const;
  /// Returns the shapes of the inputs' rows.
  virtual std::vector<Shape> input_shapes() const { return before().input_shapes(); }
  /// Returns a text of all stages up to this one, which is part of a cache file's fingerprint.
  std::string text() const;
  /// Returns the position in the pipeline: the length of the longest path from a source, which is
  /// 0.
  int64_t position() const { return position_; }

  /// Returns "data, map at stage 2".
  std::string where() const;
  /// Returns "data, map at stage 2, row 7".
  std::string where(int64_t number) const;

 protected:
  const PipelineStage& before(size_t i = 0) const { return *before_[i]; }
  /// Returns this stage's own arguments as a text, for text().
  virtual std::string arguments() const { return {}; }
  /// Returns the shapes of the first element's inputs; makes that element once.
  std::vector<Shape> first_input_shapes() const;
  /// Throws ConfigError if a stage before is a stream.
  void check_any_order() const;
  /// Throws ConfigError if the stage before is a stream or endless.
  void check_has_end() const;
  /// Throws ConfigError if the stage before is a stream or its elements are batches.
  void check_rows() const;

 private:
  std::string kind_;
  std::vector<std::shared_ptr<const PipelineStage>> before_;
  int64_t position_ = 0;
  mutable std::mutex mutex_;
  mutable std::optional<std::vector<Shape>> input_shapes_;
};

using PipelineStagePtr = std::shared_ptr<const PipelineStage>;

/// Calls `visit` with consecutive intervals of the numbers [0, size) on `threads` threads. Rethrows
/// the error of the first interval that failed.
void for_each_interval(int64_t size, int64_t threads,
                       const std::function<void(std::span<const int64_t>)>& visit);

/// Limits ATen to one thread on the calling thread, so that it starts no thread pool there.
void use_one_aten_thread();

/// Rethrows the exception of the current catch clause with `where` before its text. An exception
/// that is not Tessera's becomes an Error of one line.
[[noreturn]] void rethrow_in_stage(const std::string& where);

/// Throws ConfigError if an option of a stage is below `least`.
void check_at_least(const std::string& where, const std::string& option, int64_t value,
                    int64_t least);

}  // namespace tessera::detail
