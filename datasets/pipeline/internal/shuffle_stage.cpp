#include <algorithm>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {
namespace {

using Elements = std::shared_ptr<const PipelineElements>;

/// Elements in the order of a Permutation, or in one drawn from a buffer.
class ShuffledElements final : public PipelineElements {
 public:
  ShuffledElements(Elements before, Seed seed, std::optional<int64_t> buffer)
      : before_(std::move(before)) {
    const int64_t size = before_->size().value();
    if (!buffer || *buffer >= size) {
      permutation_.emplace(size, seed);
    } else {
      draw(size, seed, *buffer);
    }
  }

  std::optional<int64_t> size() const override { return before_->size(); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<int64_t> mapped;
    for (const int64_t number : numbers) mapped.push_back(source_index(number));
    return before_->get(mapped);
  }
  std::optional<int64_t> original(int64_t number) const override {
    return before_->original(source_index(number));
  }

 private:
  int64_t source_index(int64_t number) const {
    return permutation_ ? (*permutation_)(number) : drawn_[static_cast<size_t>(number)];
  }

  /// Draws each number from a buffer of the next `buffer` ones; the following number replaces it.
  void draw(int64_t size, Seed seed, int64_t buffer) {
    std::vector<uint32_t> words(static_cast<size_t>(size));
    const Interval all[] = {{0, size}};
    stateless_bits(seed, {size}, all, words.data());
    std::vector<int64_t> waiting(static_cast<size_t>(buffer));
    for (int64_t i = 0; i < buffer; ++i) waiting[static_cast<size_t>(i)] = i;
    for (int64_t next = buffer; const uint32_t word : words) {
      int64_t& slot = waiting[(uint64_t{word} * waiting.size()) >> 32];
      drawn_.push_back(slot);
      slot = next < size ? next++ : waiting.back();
      if (std::ssize(drawn_) > size - buffer) waiting.pop_back();
    }
  }

  Elements before_;
  std::optional<Permutation> permutation_;
  std::vector<int64_t> drawn_;
};

class ShuffleStage final : public PipelineStage {
 public:
  ShuffleStage(PipelineStagePtr stage, std::optional<int64_t> buffer, const ShuffleOptions& options)
      : PipelineStage("shuffle", {std::move(stage)}), buffer_(buffer), options_(options) {
    if (buffer_) check_at_least(where(), "buffer", *buffer_, 1);
    check_has_end();
  }
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    const Seed seed = options_.seed.value_or(Seed{global_seed(), 0});
    const uint64_t pass = options_.reshuffle_each_epoch ? reading.pass : 0;
    return std::make_shared<ShuffledElements>(before().open(reading), fold_in(seed, pass), buffer_);
  }

 protected:
  std::string arguments() const override {
    return str(" ", buffer_.value_or(0), " ", options_.seed ? options_.seed->a : -1, " ",
               options_.seed ? options_.seed->b : -1);
  }

 private:
  std::optional<int64_t> buffer_;
  ShuffleOptions options_;
};

}  // namespace

PipelineStagePtr shuffle_stage(PipelineStagePtr before, std::optional<int64_t> buffer,
                               const ShuffleOptions& options) {
  return std::make_shared<ShuffleStage>(std::move(before), buffer, options);
}

}  // namespace tessera::detail
