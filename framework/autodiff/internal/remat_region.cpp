#include <tessera/framework/autodiff/internal/remat_region.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

namespace {

constexpr std::array<std::string_view, 10> matmuls = {
    "conv",       "conv_transpose", "dense",      "dense_relu", "einsum",
    "fused_conv", "int8_einsum",    "lstm_layer", "matmul",     "recurrence"};

uint64_t next_region() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

const RematRegion* outermost(const RematRegion& region) {
  const RematRegion* const around = thread_state().remat_region;
  return around ? around : &region;
}

}  // namespace

SavedOps::SavedOps(const RematPolicy& policy) : collectives_(policy.collectives) {
  for (const std::string& name : policy.save) {
    if (name == "matmuls") {
      for (std::string_view each : matmuls) {
        if (const OpInfo* const info = find_op(each)) infos_.push_back(info);
      }
      continue;
    }
    const OpInfo* const info = find_op(name);
    if (!info) {
      std::vector<std::string> names = {"matmuls"};
      for (const OpInfo* known : op_registry()) names.emplace_back(known->name);
      throw ConfigError("remat", "save has names of operations, or \"matmuls\"", in_quotes(name),
                        suggestion(name, names));
    }
    infos_.push_back(info);
  }
}

bool SavedOps::contains(const OpInfo& info, bool communicated) const {
  if (communicated && !collectives_) return true;
  return std::find(infos_.begin(), infos_.end(), &info) != infos_.end();
}

RematRegionScope::RematRegionScope(const SavedOps& saved)
    : region_{saved, next_region()}, scoped_(thread_state().remat_region, outermost(region_)) {}

RematRegionScope::RematRegionScope()
    : region_{SavedOps(), 0}, scoped_(thread_state().remat_region, outermost(region_)) {}

const RematRegion* remat_region() { return thread_state().remat_region; }

}  // namespace tessera::detail
