#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tessera/datasets/pipeline/internal/element_file.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_rows.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;

/// Returns `reading` for pass 0: a cache holds the first epoch whichever is read first, so that a
/// resumed run sees the same elements.
PassOptions first_pass(const PassOptions& reading) {
  PassOptions first = reading;
  first.pass = 0;
  return first;
}

/// The cached elements by number. Thread-safe.
class ElementCache {
 public:
  /// Returns a copy; absent if the element is not cached, or with other rows of its batch than
  /// `layouts` selects.
  std::optional<Examples> find(int64_t number, const LayoutMap& layouts) const {
    std::optional<Examples> cached;
    {
      const std::lock_guard lock(mutex_);
      const auto it = elements_.find(number);
      if (it != elements_.end()) cached = it->second;
    }
    if (!cached) return std::nullopt;
    if (batched_) {
      const int64_t rows = cached->part ? cached->part->of : held_rows(*cached);
      const std::optional<RowPart> requested = part_to_read(rows, layouts);
      const bool same =
          requested ? cached->part && cached->part->rows == requested->rows : !cached->part;
      if (!same) return std::nullopt;
    }
    return cloned(*cached);
  }
  void insert(int64_t number, const Examples& element) {
    Examples own = cloned(element);
    const std::lock_guard lock(mutex_);
    elements_.insert_or_assign(number, std::move(own));
  }
  explicit ElementCache(bool batched) : batched_(batched) {}

 private:
  bool batched_;
  mutable std::mutex mutex_;
  std::unordered_map<int64_t, Examples> elements_;
};

class MemoryCachedElements final : public PipelineElements {
 public:
  MemoryCachedElements(Elements before, LayoutMap layouts, ElementCache& cache)
      : before_(std::move(before)), layouts_(std::move(layouts)), cache_(cache) {}

  std::optional<int64_t> size() const override { return before_->size(); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> elements(numbers.size());
    std::vector<int64_t> missing;
    std::vector<size_t> positions;
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::optional<Examples> cached = cache_.find(numbers[i], layouts_);
      if (cached) {
        elements[i] = std::move(*cached);
      } else {
        missing.push_back(numbers[i]);
        positions.push_back(i);
      }
    }
    if (missing.empty()) return elements;
    std::vector<Examples> made = before_->get(missing);
    for (size_t i = 0; i < made.size(); ++i) {
      cache_.insert(missing[i], made[i]);
      elements[positions[i]] = std::move(made[i]);
    }
    return elements;
  }
  std::optional<int64_t> original(int64_t number) const override { return number; }

 private:
  Elements before_;
  LayoutMap layouts_;
  ElementCache& cache_;
};

class MemoryCacheStage final : public PipelineStage {
 public:
  explicit MemoryCacheStage(PipelineStagePtr stage)
      : PipelineStage("cache", {std::move(stage)}), cache_(batched()) {
    check_has_end();
  }
  Elements open(const PassOptions& reading) const override {
    return std::make_shared<MemoryCachedElements>(before().open(first_pass(reading)),
                                                  reading.layouts, cache_);
  }

 private:
  mutable ElementCache cache_;
};

class FileCachedElements final : public PipelineElements {
 public:
  FileCachedElements(std::shared_ptr<const ElementFile> file, LayoutMap layouts, bool batched)
      : file_(std::move(file)), layouts_(std::move(layouts)), batched_(batched) {}

  std::optional<int64_t> size() const override { return file_->size(); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> elements;
    for (const int64_t number : numbers) {
      Examples element = file_->read(number);
      elements.push_back(batched_ ? part_of(std::move(element), layouts_) : std::move(element));
    }
    return elements;
  }
  std::optional<int64_t> original(int64_t number) const override { return number; }

 private:
  std::shared_ptr<const ElementFile> file_;
  LayoutMap layouts_;
  bool batched_;
};

class FileCacheStage final : public PipelineStage {
 public:
  FileCacheStage(PipelineStagePtr stage, std::string path)
      : PipelineStage("cache", {std::move(stage)}), path_(std::move(path)) {
    check_has_end();
  }
  Elements open(const PassOptions& reading) const override {
    PassOptions full_reading = first_pass(reading);
    full_reading.layouts = {};
    return std::make_shared<FileCachedElements>(file(full_reading), reading.layouts, batched());
  }

 private:
  /// Opens the file on the first call, and writes it before if it is missing.
  std::shared_ptr<const ElementFile> file(const PassOptions& reading) const {
    const std::lock_guard lock(mutex_);
    if (!file_) {
      file_ = element_file(path_, *before().open(reading), before().text(), threads(), where());
    }
    return file_;
  }

  std::string path_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const ElementFile> file_;
};

}  // namespace

PipelineStagePtr memory_cache_stage(PipelineStagePtr before) {
  return std::make_shared<MemoryCacheStage>(std::move(before));
}

PipelineStagePtr file_cache_stage(PipelineStagePtr before, const std::string& file) {
  return std::make_shared<FileCacheStage>(std::move(before), file);
}

}  // namespace tessera::detail
