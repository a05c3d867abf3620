#include <tessera/framework/cluster/coordination/pending_gathers.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// Of texts that one rank has given and that wait for the others.
constexpr size_t max_held_bytes = 4 * max_text_bytes;

/// An exchange takes memory even if its texts are empty.
size_t held_bytes(const Round& round, const std::string& text) {
  return text.size() + round.key.size() + round.texts.size() * sizeof(std::string) + sizeof round;
}

}  // namespace

std::string check_key(uint64_t number) { return str("call ", number); }

std::string text_key(const std::string& key) { return str("text ", key); }

std::vector<int> Round::ranks(bool there) const {
  std::vector<int> found;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].has_value() == there) found.push_back(static_cast<int>(rank));
  }
  return found;
}

std::optional<Round> ControlRounds::add(const Round& about, int rank, std::string text) {
  const auto place = static_cast<size_t>(rank);
  std::deque<Round>& queue = rounds_[about.key];
  size_t at = 0;
  while (at < queue.size() && queue[at].texts[place].has_value()) ++at;
  if (at == queue.size()) {
    queue.push_back(about);
    queue.back().texts.resize(size_);
  }
  Round& round = queue[at];
  bytes_[place] += held_bytes(round, text);
  if (bytes_[place] > max_held_bytes) {
    throw BadFrame(str("more than ", max_held_bytes, " bytes of texts that wait for others"));
  }
  round.texts[place] = std::move(text);
  if (!round.ranks(false).empty()) return std::nullopt;
  // Each rank fills the exchanges of a key in order, so that the first one is complete first.
  Round complete = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) rounds_.erase(about.key);
  for (size_t i = 0; i < size_; ++i) bytes_[i] -= held_bytes(complete, *complete.texts[i]);
  return complete;
}

const Round* ControlRounds::waiting_for(int rank) const {
  const Round* found = nullptr;
  for (const auto& [key, queue] : rounds_) {
    for (const Round& round : queue) {
      if (round.texts[static_cast<size_t>(rank)].has_value()) continue;
      if (found == nullptr || round.since < found->since) found = &round;
    }
  }
  return found;
}

const Round* ControlRounds::oldest() const {
  const Round* found = nullptr;
  for (const auto& [key, queue] : rounds_) {
    if (found == nullptr || queue.front().since < found->since) found = &queue.front();
  }
  return found;
}

void ControlRounds::discount_pause(std::chrono::steady_clock::duration duration) {
  for (auto& [key, queue] : rounds_) {
    for (Round& round : queue) round.since += duration;
  }
}

}  // namespace tessera::detail
