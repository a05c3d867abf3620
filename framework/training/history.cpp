#include <tessera/framework/training/history.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/text.hpp>

namespace tessera {

void History::append(int64_t epoch_index, const Logs& logs) {
  epoch.push_back(epoch_index);
  for (const auto& [name, value] : logs) {
    auto known = std::find_if(history.begin(), history.end(),
                              [&name = name](const auto& course) { return course.first == name; });
    if (known == history.end()) known = history.insert(known, {name, {}});
    known->second.push_back(value);
  }
}

const std::vector<double>& History::at(const std::string& name) const {
  std::string names;
  for (const auto& [known, course] : history) {
    if (known == name) return course;
    names += (names.empty() ? "" : ", ") + known;
  }
  throw StateError("history", "has " + (names.empty() ? "no values yet" : names), in_quotes(name),
                   "ask for a value that fit reported");
}

std::string History::to_json() const {
  Json courses = Json::object();
  for (const auto& [name, course] : history) courses[name] = course;
  const Json json{{"history", courses}, {"steps", steps}, {"data", data}};
  return to_json_text(json, -1);
}

void History::save(const std::string& path) const { write_file_atomically(path, to_json() + "\n"); }

}  // namespace tessera
