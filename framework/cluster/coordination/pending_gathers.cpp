#include <tessera/framework/cluster/coordination/pending_gathers.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// Maximum bytes of one rank's texts in incomplete exchanges.
constexpr size_t max_held_bytes = 4 * max_text_bytes;

/// Returns the memory that a text accounts for; an exchange takes some even if its texts are empty.
size_t held_bytes(const PendingGather& exchange, const std::string& text) {
  return text.size() + exchange.key.size() + exchange.texts.size() * sizeof(std::string) +
         sizeof exchange;
}

}  // namespace

std::string check_key(uint64_t number) { return str("call ", number); }

std::string text_key(const std::string& key) { return str("text ", key); }

std::vector<int> PendingGather::ranks(bool joined) const {
  std::vector<int> matching;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].has_value() == joined) matching.push_back(static_cast<int>(rank));
  }
  return matching;
}

std::optional<PendingGather> PendingGathers::add(const PendingGather& description, int rank,
                                                 std::string text) {
  const auto index = static_cast<size_t>(rank);
  std::deque<PendingGather>& queue = pending_[description.key];
  size_t at = 0;
  while (at < queue.size() && queue[at].texts[index].has_value()) ++at;
  if (at == queue.size()) {
    queue.push_back(description);
    queue.back().texts.resize(size_);
  }
  PendingGather& exchange = queue[at];
  bytes_[index] += held_bytes(exchange, text);
  if (bytes_[index] > max_held_bytes) {
    throw BadFrame(str("more than ", max_held_bytes, " bytes of texts that wait for others"));
  }
  exchange.texts[index] = std::move(text);
  if (!exchange.ranks(false).empty()) return std::nullopt;
  // Each rank fills the exchanges of a key in order, so the first one completes first.
  PendingGather complete = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) pending_.erase(description.key);
  for (size_t i = 0; i < size_; ++i) bytes_[i] -= held_bytes(complete, *complete.texts[i]);
  return complete;
}

const PendingGather* PendingGathers::waiting_for(int rank) const {
  const PendingGather* earliest = nullptr;
  for (const auto& [key, queue] : pending_) {
    for (const PendingGather& exchange : queue) {
      if (exchange.texts[static_cast<size_t>(rank)].has_value()) continue;
      if (earliest == nullptr || exchange.since < earliest->since) earliest = &exchange;
    }
  }
  return earliest;
}

const PendingGather* PendingGathers::oldest() const {
  const PendingGather* earliest = nullptr;
  for (const auto& [key, queue] : pending_) {
    if (earliest == nullptr || queue.front().since < earliest->since) earliest = &queue.front();
  }
  return earliest;
}

void PendingGathers::discount_pause(std::chrono::steady_clock::duration duration) {
  for (auto& [key, queue] : pending_) {
    for (PendingGather& exchange : queue) exchange.since += duration;
  }
}

}  // namespace tessera::detail
