#include <tessera/framework/cluster/coordination/pending_gathers.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// Maximum bytes of one rank's texts in incomplete exchanges.
constexpr size_t max_held_bytes = 4 * max_text_bytes;

/// Returns the memory that a text accounts for; an exchange takes some even if its texts are empty.
size_t held_bytes(const PendingGather& round, const std::string& text) {
  return text.size() + round.key.size() + round.texts.size() * sizeof(std::string) + sizeof round;
}

}  // namespace

std::string check_key(uint64_t number) { return str("call ", number); }

std::string text_key(const std::string& key) { return str("text ", key); }

std::vector<int> PendingGather::ranks(bool there) const {
  std::vector<int> found;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].has_value() == there) found.push_back(static_cast<int>(rank));
  }
  return found;
}

std::optional<PendingGather> PendingGathers::add(const PendingGather& about, int rank,
                                                 std::string text) {
  const auto place = static_cast<size_t>(rank);
  std::deque<PendingGather>& queue = rounds_[about.key];
  size_t at = 0;
  while (at < queue.size() && queue[at].texts[place].has_value()) ++at;
  if (at == queue.size()) {
    queue.push_back(about);
    queue.back().texts.resize(size_);
  }
  PendingGather& round = queue[at];
  bytes_[place] += held_bytes(round, text);
  if (bytes_[place] > max_held_bytes) {
    throw BadFrame(str("more than ", max_held_bytes, " bytes of texts that wait for others"));
  }
  round.texts[place] = std::move(text);
  if (!round.ranks(false).empty()) return std::nullopt;
  // Each rank fills the exchanges of a key in order, so the first one completes first.
  PendingGather complete = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) rounds_.erase(about.key);
  for (size_t i = 0; i < size_; ++i) bytes_[i] -= held_bytes(complete, *complete.texts[i]);
  return complete;
}

const PendingGather* PendingGathers::waiting_for(int rank) const {
  const PendingGather* found = nullptr;
  for (const auto& [key, queue] : rounds_) {
    for (const PendingGather& round : queue) {
      if (round.texts[static_cast<size_t>(rank)].has_value()) continue;
      if (found == nullptr || round.since < found->since) found = &round;
    }
  }
  return found;
}

const PendingGather* PendingGathers::oldest() const {
  const PendingGather* found = nullptr;
  for (const auto& [key, queue] : rounds_) {
    if (found == nullptr || queue.front().since < found->since) found = &queue.front();
  }
  return found;
}

void PendingGathers::discount_pause(std::chrono::steady_clock::duration duration) {
  for (auto& [key, queue] : rounds_) {
    for (PendingGather& round : queue) round.since += duration;
  }
}

}  // namespace tessera::detail
