#include <tessera/framework/strategy/internal/evaluation_log.hpp>

#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/training/callbacks/internal/python_repr.hpp>

namespace tessera::detail {

namespace {

std::vector<std::string> fields_of(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

}  // namespace

EvaluationLog::EvaluationLog(std::string csv, std::string event_folder)
    : csv_(std::move(csv)), event_folder_(std::move(event_folder)) {
  if (!exists(csv_)) return;
  std::string text = read_file(csv_);
  const size_t complete_bytes = text.find_last_of('\n') + 1;
  if (complete_bytes < text.size()) {
    text.resize(complete_bytes);
    write_file_atomically(csv_, text);
  }
  if (text.empty()) return;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> head = fields_of(line);
  if (head.size() < 2 || head[0] != "step" || head[1] != "checkpoint") {
    throw FileError(csv_, "its first line begins with step,checkpoint", in_quotes(line),
                    "remove it, or name another file");
  }
  names_.assign(head.begin() + 2, head.end());
  while (std::getline(lines, line)) {
    int64_t step = 0;
    const auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (wrong == std::errc()) steps_.insert(step);
  }
}

void EvaluationLog::add(int64_t step, const std::string& checkpoint, const Logs& logs) {
  if (names_.empty()) {
    std::vector<std::string> head = {"step", "checkpoint"};
    for (const auto& [name, value] : logs) names_.push_back(name);
    head.insert(head.end(), names_.begin(), names_.end());
    write(head);
  }
  if (!event_folder_.empty()) {
    if (!events_) events_ = std::make_unique<EventFileWriter>(event_folder_);
    for (const auto& [name, value] : logs) {
      events_->scalar("evaluation_" + name + "_vs_iterations", value, step);
    }
    events_->flush();
  }
  std::vector<std::string> row = {std::to_string(step), checkpoint};
  for (const std::string& name : names_) {
    const auto value = find_value(logs, name);
    row.push_back(value ? python_repr(*value) : "NA");
  }
  write(row);
  steps_.insert(step);
}

void EvaluationLog::write(const std::vector<std::string>& row) const {
  std::ofstream file(csv_, std::ios::binary | std::ios::app);
  file << join(row, ",") << "\r\n" << std::flush;
  if (file) return;
  throw FileError(csv_, "the evaluations can be written", "an error of the system",
                  "look for a missing folder or a full disk");
}

}  // namespace tessera::detail
