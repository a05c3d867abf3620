#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

/// Other processes failed at what all do together; this one did its part.
class RankFailures : public FileError {
 public:
  RankFailures(const std::string& where, const std::string& expected,
               std::map<int, std::string> failures);
  /// The errors of exactly the processes that failed, by rank.
  const std::map<int, std::string>& failures() const { return failures_; }

 private:
  std::map<int, std::string> failures_;
};

/// The texts that all processes gave, by rank; each calls it equally often. Empty: there is one
/// process.
using GatherTexts = std::function<std::vector<std::string>(const std::string& text)>;

/// Does what may fail on one process alone; then every one gets the texts of all by rank, or every
/// one throws: those at fault their own errors, the others RankFailures `[where] expected. ...`.
/// Throws what `gather` throws.
std::vector<std::string> collectively(const GatherTexts& gather, const std::string& where,
                                      const std::string& expected,
                                      const std::function<std::string()>& work);

}  // namespace tessera::detail
