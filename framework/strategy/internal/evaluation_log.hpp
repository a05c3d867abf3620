#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tessera/framework/io/internal/event_file.hpp>
#include <tessera/framework/training/logs.hpp>

namespace tessera::detail {

/// Writes evaluations to a CSV file, which later runs append to, and to an event file.
class EvaluationLog {
 public:
  /// Reads which steps the CSV file has, and removes an incomplete last line, which a killed
  /// process left. Throws FileError.
  EvaluationLog(std::string csv, std::string event_folder);
  bool has(int64_t step) const { return steps_.count(step) > 0; }
  /// Appends a line, after a header if it is the first. Throws FileError.
  void add(int64_t step, const std::string& checkpoint, const Logs& logs);

 private:
  void write(const std::vector<std::string>& row) const;

  std::string csv_, event_folder_;
  std::vector<std::string> names_;  ///< names of the columns after step and checkpoint
  std::set<int64_t> steps_;
  std::unique_ptr<EventFileWriter> events_;
};

}  // namespace tessera::detail
