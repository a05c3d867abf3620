#include "tests/support/held_communicator.hpp"

#include <tessera/framework/base/error.hpp>

#include <functional>
#include <utility>

#include "tests/support/passing_communicator.hpp"

namespace tessera::test {

using namespace detail;

namespace {

constexpr int64_t late_step = 1000;

class HeldWork final : public Work {
 public:
  HeldWork(WorkPtr inner, std::function<void()> release)
      : inner_(std::move(inner)), release_(std::move(release)) {}
  void wait() override {
    if (release_) std::exchange(release_, nullptr)();
    inner_->wait();
  }
  bool done() const override { return inner_->done(); }

 private:
  WorkPtr inner_;
  std::function<void()> release_;
};

class HeldCommunicator final : public PassingCommunicator {
 public:
  using PassingCommunicator::PassingCommunicator;

  void begin_step(int64_t step, uint64_t signature) override {
    holds_ = step >= 2;
    // In a late step processes do not meet to compare their calls.
    PassingCommunicator::begin_step(late_step + step, signature);
  }
  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                     at::Tensor& out) override {
    return held(group, [&] { return PassingCommunicator::all_reduce(group, kind, parts, out); });
  }
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    return held(group, [&] { return PassingCommunicator::reduce_scatter(group, kind, values); });
  }

 private:
  template <class Run>
  WorkPtr held(const Group& group, const Run& run) {
    if (!holds_ || group.is_local()) return run();
    const auto meet = [this, key = str("held ", ++reductions_)] { gather(key, ""); };
    if (rank() != 0) {
      meet();
      return run();
    }
    WorkPtr work = run();
    if (work) return std::make_shared<HeldWork>(std::move(work), meet);
    meet();
    return nullptr;
  }

  bool holds_ = false;
  int64_t reductions_ = 0;
};

}  // namespace

std::shared_ptr<Communicator> held_communicator(std::shared_ptr<Communicator> inner) {
  return std::make_shared<HeldCommunicator>(std::move(inner));
}

}  // namespace tessera::test
