#include <tessera/framework/training/history.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera {

using namespace detail;

namespace {

std::vector<double> values(const Json& json, const JsonPath& path) {
  std::vector<std::optional<double>> list;
  json_get(json, path, list);
  std::vector<double> numbers;
  for (const auto& value : list) numbers.push_back(value.value_or(std::nan("")));
  return numbers;
}

}  // namespace

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

Json History::as_json() const {
  Json courses = Json::object();
  for (const auto& [name, course] : history) courses[name] = course;
  return {{"history", courses}, {"steps", steps}, {"epoch", epoch}, {"data", data}};
}

History History::from_json(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  History made;
  const Json courses = object.take<Json>("history");
  if (!courses.is_object()) json_fail(courses, path.key("history"), "an object");
  for (const auto& [name, course] : courses.items()) {
    made.history.emplace_back(name, values(course, path.key("history").key(name)));
  }
  made.steps = values(object.take<Json>("steps"), path.key("steps"));
  made.epoch = object.take<std::vector<int64_t>>("epoch");
  made.data = object.take<std::string>("data");
  return made;
}

std::string History::to_json() const { return to_json_text(as_json(), -1); }

void History::save(const std::string& path) const { write_file_atomically(path, to_json() + "\n"); }

}  // namespace tessera
