#include <unordered_map>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;

/// The elements with the given numbers.
class SelectedElements final : public PipelineElements {
 public:
  SelectedElements(Elements before, std::vector<int64_t> selected)
      : before_(std::move(before)), selected_(std::move(selected)) {}

  std::optional<int64_t> size() const override { return std::ssize(selected_); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<int64_t> mapped;
    for (const int64_t number : numbers) mapped.push_back(selected_[static_cast<size_t>(number)]);
    return before_->get(mapped);
  }
  std::optional<int64_t> original(int64_t number) const override {
    return before_->original(selected_[static_cast<size_t>(number)]);
  }

 private:
  Elements before_;
  std::vector<int64_t> selected_;
};

class FilterStage final : public PipelineStage {
 public:
  FilterStage(PipelineStagePtr stage, DataPipeline::Predicate predicate,
              const FilterOptions& options)
      : PipelineStage("filter", {std::move(stage)}),
        predicate_(std::move(predicate)),
        options_(options) {
    check_at_least(where(), "threads", options_.threads, 1);
    check_has_end();
  }

  Elements open(const PassOptions& reading) const override {
    Elements before_these = before().open(reading);
    // The predicate sees all rows of a batch, so that every process selects the same elements.
    PassOptions full_reading = reading;
    full_reading.layouts = {};
    return std::make_shared<SelectedElements>(before_these, selected(*before().open(full_reading)));
  }
  std::optional<int64_t> count() const override { return std::nullopt; }

 private:
  /// Returns the numbers of the elements that pass. The predicate is not called again for elements
  /// that are the same in every pass.
  std::vector<int64_t> selected(const PipelineElements& all) const {
    const std::lock_guard lock(mutex_);
    const int64_t size = all.size().value();
    std::vector<int64_t> untested;
    std::vector<char> passes(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) {
      const std::optional<int64_t> original = all.original(i);
      const auto known = original ? known_.find(*original) : known_.end();
      if (known == known_.end()) {
        untested.push_back(i);
      } else {
        passes[static_cast<size_t>(i)] = known->second;
      }
    }
    test_elements(all, untested, passes);
    std::vector<int64_t> result;
    for (int64_t i = 0; i < size; ++i) {
      if (passes[static_cast<size_t>(i)]) result.push_back(i);
    }
    return result;
  }

  void test_elements(const PipelineElements& all, const std::vector<int64_t>& untested,
                     std::vector<char>& passes) const {
    const auto test = [&](std::span<const int64_t> interval) {
      std::vector<int64_t> numbers;
      for (const int64_t i : interval) numbers.push_back(untested[static_cast<size_t>(i)]);
      const std::vector<Examples> elements = all.get(numbers);
      for (size_t i = 0; i < elements.size(); ++i) {
        try {
          passes[static_cast<size_t>(numbers[i])] = predicate_(elements[i]);
        } catch (...) {
          rethrow_in_stage(where(numbers[i]));
        }
      }
    };
    for_each_interval(std::ssize(untested), options_.threads, test);
    for (const int64_t i : untested) {
      const std::optional<int64_t> original = all.original(i);
      if (original) known_[*original] = passes[static_cast<size_t>(i)];
    }
  }

  DataPipeline::Predicate predicate_;
  FilterOptions options_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<int64_t, char> known_;
};

}  // namespace

PipelineStagePtr filter_stage(PipelineStagePtr before, DataPipeline::Predicate predicate,
                              const FilterOptions& options) {
  return std::make_shared<FilterStage>(std::move(before), std::move(predicate), options);
}

}  // namespace tessera::detail
