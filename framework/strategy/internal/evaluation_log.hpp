#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tessera/framework/io/internal/event_file.hpp>
#include <tessera/framework/training/logs.hpp>

namespace tessera::detail {

/// The lines of evaluations in a CSV file, which later runs go on in, and in an event file.
class EvaluationLog {
 public:
  /// Reads which steps the file has; a line that a killed process left unfinished goes. Throws
  /// FileError.
  EvaluationLog(std::string csv, std::string event_folder);
  bool has(int64_t step) const { return steps_.count(step) > 0; }
  /// Appends a line, under a head line if it is the first one. Throws FileError.
  void add(int64_t step, const std::string& checkpoint, const Logs& logs);

 private:
  void write(const std::vector<std::string>& row) const;

  std::string csv_, event_folder_;
  std::vector<std::string> names_;  ///< names of the columns behind step and checkpoint
  std::set<int64_t> steps_;
  std::unique_ptr<EventFileWriter> events_;
};

}  // namespace tessera::detail
