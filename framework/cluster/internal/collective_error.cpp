#include <tessera/framework/cluster/internal/collective_error.hpp>

#include <exception>
#include <utility>

#include <tessera/framework/base/internal/out_of_memory.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

namespace tessera::detail {
namespace {

// First character of an exchanged text.
constexpr char good = '+';
constexpr char bad = '-';

std::string received(const std::map<int, std::string>& failures) {
  std::vector<int> ranks;
  for (const auto& [rank, text] : failures) ranks.push_back(rank);
  std::string first = one_line(failures.begin()->second, 1000);
  if (first.ends_with('.')) first.pop_back();
  return str("an error on ", rank_names(ranks), ": ", first);
}

}  // namespace

RankFailures::RankFailures(const std::string& where, const std::string& expected,
                           std::map<int, std::string> failures)
    : FileError(where, expected, received(failures), ""), failures_(std::move(failures)) {}

std::vector<std::string> collectively(const GatherTexts& gather, const std::string& where,
                                      const std::string& expected,
                                      const std::function<std::string()>& work) {
  if (!gather) return {work()};
  std::string text;
  std::exception_ptr error;
  try {
    text = good + work();
  } catch (const std::exception& failure) {
    // It may have left a collective inside of `work` that the others are in.
    if (is_out_of_memory(failure)) throw;
    error = std::current_exception();
    text = bad + std::string(failure.what());
  }
  std::vector<std::string> texts = gather(text);
  if (error) std::rethrow_exception(error);
  std::map<int, std::string> failures;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const bool failed = !texts[rank].starts_with(good);
    texts[rank].erase(0, 1);
    if (failed) failures[static_cast<int>(rank)] = texts[rank];
  }
  if (!failures.empty()) throw RankFailures(where, expected, std::move(failures));
  return texts;
}

}  // namespace tessera::detail
