#include <tessera/framework/cluster/internal/rank_text.hpp>

#include <vector>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::string rank_names(std::span<const int> ranks) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < ranks.size();) {
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - begin > 2) {
      parts.push_back(str(ranks[begin], "-", ranks[end - 1]));
    } else {
      for (size_t i = begin; i < end; ++i) parts.push_back(str(ranks[i]));
    }
    begin = end;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

}  // namespace tessera::detail
