#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

/// Other processes failed in collective work; this one succeeded.
class RankFailures : public FileError {
 public:
  RankFailures(const std::string& where, const std::string& expected,
               std::map<int, std::string> failures);
  /// Error texts of the processes that failed, by rank.
  const std::map<int, std::string>& failures() const { return failures_; }

 private:
  std::map<int, std::string> failures_;
};

/// Gathers a text from every process and returns them by rank; all processes must call it equally
/// often. Empty: there is only one process.
using GatherTexts = std::function<std::vector<std::string>(const std::string& text)>;

/// Runs work that may fail on some processes only. Either all processes get the texts of all, by
/// rank, or all of them throw: the failed ones their own error, the others RankFailures
/// `[where] expected. ...`. A process whose memory ran out throws at once: it is out of step, and
/// the others learn of it when it ends. Throws what `gather` throws.
std::vector<std::string> collectively(const GatherTexts& gather, const std::string& where,
                                      const std::string& expected,
                                      const std::function<std::string()>& work);

}  // namespace tessera::detail
