#include <algorithm>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_rows.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;

Examples zipped(Examples a, Examples b) {
  const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(a.x, b.x);
  append(a.y, b.y);
  append(a.sample_weight, b.sample_weight);
  return a;
}

int64_t all_rows(const Examples& batch) { return batch.part ? batch.part->of : held_rows(batch); }

std::optional<int64_t> shorter(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
}

class ZippedElements final : public PipelineElements {
 public:
  ZippedElements(const PipelineStage& stage, Elements first, Elements second)
      : stage_(stage), first_(std::move(first)), second_(std::move(second)) {}

  std::optional<int64_t> size() const override { return shorter(first_->size(), second_->size()); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> elements = first_->get(numbers);
    std::vector<Examples> others = second_->get(numbers);
    elements.resize(std::min(elements.size(), others.size()));
    for (size_t i = 0; i < elements.size(); ++i) {
      if (stage_.batched() && all_rows(elements[i]) != all_rows(others[i])) {
        throw ShapeError(stage_.where(numbers[i]), "batches of both have equally many rows",
                         str(all_rows(elements[i]), " and ", all_rows(others[i])),
                         "use zip() before batch()");
      }
      elements[i] = zipped(std::move(elements[i]), std::move(others[i]));
    }
    return elements;
  }
  std::optional<int64_t> original(int64_t number) const override {
    // A pair is the same in every pass only if neither side is reordered.
    const bool same = first_->original(number) == number && second_->original(number) == number;
    return same ? std::optional(number) : std::nullopt;
  }

 private:
  const PipelineStage& stage_;
  Elements first_, second_;
};

/// Throws ConfigError unless both stages yield rows, or both yield batches.
void check_same_batching(const std::string& where, const PipelineStage& a, const PipelineStage& b) {
  if (a.batched() == b.batched()) return;
  throw ConfigError(where, "both data are rows, or both are batches", "rows and batches",
                    "batch both, or batch after this stage");
}

class ZipStage final : public PipelineStage {
 public:
  ZipStage(PipelineStagePtr stage, PipelineStagePtr other)
      : PipelineStage("zip", {std::move(stage), std::move(other)}) {
    check_same_batching(where(), before(0), before(1));
  }
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return std::make_shared<ZippedElements>(*this, before(0).open(reading),
                                            before(1).open(reading));
  }
  std::optional<int64_t> count() const override {
    return shorter(before(0).count(), before(1).count());
  }
  std::vector<Shape> input_shapes() const override { return first_input_shapes(); }
  bool is_stream() const override { return before(0).is_stream() || before(1).is_stream(); }
};

class ConcatenatedElements final : public PipelineElements {
 public:
  ConcatenatedElements(Elements first, Elements second)
      : first_(std::move(first)), second_(std::move(second)), border_(first_->size().value()) {}

  std::optional<int64_t> size() const override {
    const int64_t second = second_->size().value();
    return second == no_end ? no_end : border_ + second;
  }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> elements;
    for (size_t i = 0; i < numbers.size();) {
      const bool in_first = numbers[i] < border_;
      std::vector<int64_t> inside;
      for (; i < numbers.size() && (numbers[i] < border_) == in_first; ++i) {
        inside.push_back(in_first ? numbers[i] : numbers[i] - border_);
      }
      for (Examples& element : (in_first ? first_ : second_)->get(inside)) {
        elements.push_back(std::move(element));
      }
    }
    return elements;
  }
  std::optional<int64_t> original(int64_t number) const override {
    const bool in_first = number < border_;
    const auto inside = in_first ? first_->original(number) : second_->original(number - border_);
    // Even numbers are of the first, odd ones of the second, since the first's are not bounded.
    return inside ? std::optional(2 * *inside + (in_first ? 0 : 1)) : std::nullopt;
  }

 private:
  Elements first_, second_;
  int64_t border_;
};

class ConcatenateStage final : public PipelineStage {
 public:
  ConcatenateStage(PipelineStagePtr stage, PipelineStagePtr other)
      : PipelineStage("concatenate", {std::move(stage), std::move(other)}) {
    check_has_end();
    check_same_batching(where(), before(0), before(1));
  }
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return std::make_shared<ConcatenatedElements>(before(0).open(reading), before(1).open(reading));
  }
  std::optional<int64_t> count() const override {
    const auto first = before(0).count(), second = before(1).count();
    if (second == no_end) return no_end;
    return first && second ? std::optional(*first + *second) : std::nullopt;
  }
};

}  // namespace

PipelineStagePtr zip_stage(PipelineStagePtr before, PipelineStagePtr other) {
  return std::make_shared<ZipStage>(std::move(before), std::move(other));
}

PipelineStagePtr concatenate_stage(PipelineStagePtr before, PipelineStagePtr other) {
  return std::make_shared<ConcatenateStage>(std::move(before), std::move(other));
}

}  // namespace tessera::detail
