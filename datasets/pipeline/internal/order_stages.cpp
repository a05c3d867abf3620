#include <algorithm>
#include <map>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;

/// Elements [first, first + count).
class SliceElements final : public PipelineElements {
 public:
  SliceElements(Elements before, int64_t first, int64_t count)
      : before_(std::move(before)), first_(first), count_(count) {}

  std::optional<int64_t> size() const override { return sliced(before_->size(), first_, count_); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<int64_t> mapped;
    for (const int64_t number : numbers) {
      if (number < count_) mapped.push_back(number + first_);
    }
    return mapped.empty() ? std::vector<Examples>() : before_->get(mapped);
  }
  std::optional<int64_t> original(int64_t number) const override {
    return before_->original(number + first_);
  }

  static std::optional<int64_t> sliced(std::optional<int64_t> all, int64_t first, int64_t count) {
    // A stream of unknown length may end early.
    if (!all) return std::nullopt;
    if (*all == no_end) return count;
    return std::min(count, std::max<int64_t>(*all - first, 0));
  }

 private:
  Elements before_;
  int64_t first_, count_;
};

class SliceStage final : public PipelineStage {
 public:
  SliceStage(PipelineStagePtr stage, std::string kind, int64_t first, int64_t count)
      : PipelineStage(std::move(kind), {std::move(stage)}), first_(first), count_(count) {
    check_at_least(where(), "count", std::min(first, count), 0);
  }
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return std::make_shared<SliceElements>(before().open(reading), first_, count_);
  }
  std::optional<int64_t> count() const override {
    return SliceElements::sliced(before().count(), first_, count_);
  }

 protected:
  std::string arguments() const override {
    return str(" ", first_, " ", count_ == no_end ? -1 : count_);
  }

 private:
  int64_t first_, count_;
};

/// Consecutive passes over the stage before.
class RepeatedElements final : public PipelineElements {
 public:
  RepeatedElements(const PipelineStage& before, PassOptions reading, int64_t count)
      : before_(before), reading_(std::move(reading)), count_(count) {
    starts_.push_back(0);
    if (before_.count() || count_ == no_end) return;
    // Passes may differ in length, so each is opened to learn its own.
    while (std::ssize(starts_) <= count_) append_pass();
  }

  std::optional<int64_t> size() const override {
    if (!before_.count()) return count_ == no_end ? no_end : starts_.back();
    const int64_t size = *before_.count();
    return size == 0 ? 0 : count_ == no_end ? no_end : count_ * size;
  }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> elements;
    for (size_t i = 0; i < numbers.size();) {
      const int64_t number = pass_of(numbers[i]);
      const Interval span = span_of(number);
      std::vector<int64_t> inside;
      for (; i < numbers.size() && numbers[i] >= span.lo && numbers[i] < span.hi; ++i) {
        inside.push_back(numbers[i] - span.lo);
      }
      for (Examples& element : pass(number)->get(inside)) elements.push_back(std::move(element));
    }
    return elements;
  }
  std::optional<int64_t> original(int64_t number) const override {
    const int64_t own = pass_of(number);
    return pass(own)->original(number - span_of(own).lo);
  }

 private:
  /// Maximum number of passes that are kept open.
  static constexpr size_t max_open_passes = 8;

  int64_t pass_of(int64_t number) const {
    if (before_.count()) return number / *before_.count();
    const std::lock_guard lock(mutex_);
    while (starts_.back() <= number) append_pass();
    return std::upper_bound(starts_.begin(), starts_.end(), number) - starts_.begin() - 1;
  }

  Interval span_of(int64_t number) const {
    if (before_.count()) return {number * *before_.count(), (number + 1) * *before_.count()};
    const std::lock_guard lock(mutex_);
    return {starts_[static_cast<size_t>(number)], starts_[static_cast<size_t>(number) + 1]};
  }

  void append_pass() const {
    const int64_t size = opened(std::ssize(starts_) - 1)->size().value();
    if (size == 0 && count_ == no_end) {
      throw ConfigError(before_.where(), "data that repeat forever have elements", "none",
                        "check the data and the stages before");
    }
    starts_.push_back(starts_.back() + size);
  }

  Elements opened(int64_t number) const {
    PassOptions reading = reading_;
    if (number > 0) reading.pass = mix(reading.pass, static_cast<uint64_t>(number));
    return before_.open(reading);
  }

  Elements pass(int64_t number) const {
    const std::lock_guard lock(mutex_);
    Elements& elements = open_[number];
    if (elements) return elements;
    const Elements made = elements = opened(number);
    if (open_.size() > max_open_passes)
      open_.erase(number == open_.begin()->first ? --open_.end() : open_.begin());
    return made;
  }

  const PipelineStage& before_;
  PassOptions reading_;
  int64_t count_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, Elements> open_;
  mutable std::vector<int64_t> starts_;  ///< first element of each pass, if lengths are unknown
};

class RepeatStage final : public PipelineStage {
 public:
  RepeatStage(PipelineStagePtr stage, std::optional<int64_t> count)
      : PipelineStage("repeat", {std::move(stage)}), count_(count.value_or(no_end)) {
    check_at_least(where(), "count", count_, 1);
    check_has_end();
  }
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return std::make_shared<RepeatedElements>(before(), reading, count_);
  }
  std::optional<int64_t> count() const override {
    const std::optional<int64_t> size = before().count();
    if (count_ == no_end) return size == 0 ? 0 : no_end;
    return size ? std::optional(*size * count_) : std::nullopt;
  }

 protected:
  std::string arguments() const override { return str(" ", count_); }

 private:
  int64_t count_;
};

class PrefetchStage final : public PipelineStage {
 public:
  PrefetchStage(PipelineStagePtr stage, int64_t count)
      : PipelineStage("prefetch", {std::move(stage)}), count_(count) {
    check_at_least(where(), "count", count_, 0);
  }
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return before().open(reading);
  }
  int64_t ahead() const override { return std::max(count_, before().ahead()); }

 private:
  int64_t count_;
};

}  // namespace

PipelineStagePtr slice_stage(PipelineStagePtr before, std::string kind, int64_t first,
                             int64_t count) {
  return std::make_shared<SliceStage>(std::move(before), std::move(kind), first, count);
}

PipelineStagePtr repeat_stage(PipelineStagePtr before, std::optional<int64_t> count) {
  return std::make_shared<RepeatStage>(std::move(before), count);
}

PipelineStagePtr prefetch_stage(PipelineStagePtr before, int64_t count) {
  return std::make_shared<PrefetchStage>(std::move(before), count);
}

}  // namespace tessera::detail
