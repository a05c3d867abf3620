#include "apps/common/option.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::app {

using namespace detail;

namespace {

namespace fs = std::filesystem;

/// Parses all of `text` as a number; returns nothing if that fails.
template <class Number>
std::optional<Number> parse_number(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

double read_positive(const std::string& where, const std::string& text) {
  const auto number = parse_number<double>(text);
  if (number && std::isfinite(*number) && *number > 0) return *number;
  throw ConfigError(where, "must be a number above 0", in_quotes(text), "write for example 0.001");
}

std::string range_text(int64_t minimum, int64_t maximum) {
  if (maximum == INT64_MAX) return str("an integer of at least ", minimum);
  return str("an integer from ", minimum, " to ", maximum);
}

int64_t read_integer(const std::string& where, const std::string& text, int64_t minimum,
                     int64_t maximum, const std::string& alternative = "") {
  const auto number = parse_number<int64_t>(text);
  if (number && *number >= minimum && *number <= maximum) return *number;
  throw ConfigError(
      where, "must be " + range_text(minimum, maximum) + alternative, in_quotes(text),
      str("write for example ", std::clamp<int64_t>(number.value_or(minimum), minimum, maximum)));
}

std::string integer_placeholder(int64_t minimum, int64_t maximum) {
  if (minimum < 0 || maximum > 9) return "N";
  std::string text = std::to_string(minimum);
  for (int64_t number = minimum + 1; number <= maximum; ++number) text += str("|", number);
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

std::optional<MeshDims> read_mesh_dims(const std::string& text) {
  MeshDims dims;
  try {
    dims = parse_mesh_dims(text);
  } catch (const MeshError&) {
    return std::nullopt;
  }
  std::set<std::string> names;
  for (const auto& [name, size] : dims) {
    if (size < 1 || !names.insert(name).second) return std::nullopt;
  }
  return dims;
}

void require_path(bool ok, const std::string& where, const std::string& expected,
                  const std::string& path, const std::string& fix) {
  if (!ok) throw ConfigError(where, expected, in_quotes(path), fix);
}

/// Throws ConfigError unless a folder of this name can be created, or written to if it exists.
void check_folder(const std::string& where, const std::string& text) {
  std::error_code ignored;
  const bool free = !fs::exists(text, ignored) || fs::is_directory(text, ignored);
  require_path(free, where, "must name a folder, or a path that does not exist yet", text,
               "choose another name");
  fs::path nearest = fs::absolute(text, ignored);
  while (!fs::exists(nearest, ignored) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  require_path(fs::is_directory(nearest, ignored) && access(nearest.c_str(), W_OK) == 0, where,
               "must be in a folder you may write to", text,
               "choose another folder than " + in_quotes(nearest.string()));
}

void check_output(const std::string& where, const std::string& text) {
  std::error_code ignored;
  const bool replaceable = !fs::exists(text, ignored) || fs::is_regular_file(text, ignored);
  require_path(!text.empty() && replaceable, where, "must name a file to write", text,
               "name a new or a regular file");
  const fs::path parent = fs::path(text).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  require_path(fs::is_directory(folder, ignored), where, "must be in a folder that exists", text,
               "create " + in_quotes(folder) + " or name another");
  require_path(access(folder.c_str(), W_OK) == 0, where, "must be in a folder you may write to",
               text, "choose another folder than " + in_quotes(folder));
}

OptionValue path_value(std::string& value, const std::string& placeholder,
                       std::function<void(const std::string&, const std::string&)> check) {
  return {
      .placeholder = placeholder,
      .json_type = JsonType::text,
      .set =
          [&value, check = std::move(check)](const std::string& where, const std::string& text) {
            check(where, text);
            value = text;
          },
      .get = [&value] { return value; }};
}

}  // namespace

OptionValue text(std::string& value, const std::string& placeholder) {
  return {placeholder, JsonType::text,
          [&value](const std::string&, const std::string& argument) { value = argument; },
          [&value] { return value; }};
}

OptionValue choice(std::string& value, std::vector<std::string> choices) {
  const std::string placeholder = join(choices, "|");
  const auto set = [&value, choices = std::move(choices)](const std::string& where,
                                                          const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      throw ConfigError(where, "must be " + join(choices, " or "), in_quotes(text),
                        "write one of them");
    }
    value = text;
  };
  return {placeholder, JsonType::text, set, [&value] { return value; }};
}

OptionValue words(std::vector<std::string>& value, const std::string& placeholder,
                  std::vector<std::string> known) {
  const auto set = [&value, known = std::move(known)](const std::string& where,
                                                      const std::string& text) {
    std::vector<std::string> selected = split(text);
    for (const std::string& name : selected) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw ConfigError(where, "every name must be known", in_quotes(name),
                        suggestion(name, known));
    }
    value = std::move(selected);
  };
  return {placeholder, JsonType::text, set, [&value] { return join(value, ","); }};
}

OptionValue integer(int64_t& value, int64_t minimum, int64_t maximum) {
  const auto set = [&value, minimum, maximum](const std::string& where, const std::string& text) {
    value = read_integer(where, text, minimum, maximum);
  };
  return {integer_placeholder(minimum, maximum), JsonType::integer, set,
          [&value] { return std::to_string(value); }};
}

OptionValue integer(std::optional<int64_t>& value, int64_t minimum, int64_t maximum) {
  const auto set = [&value, minimum, maximum](const std::string& where, const std::string& text) {
    value = read_integer(where, text, minimum, maximum);
  };
  return {"N", JsonType::integer, set, [&value] { return value ? std::to_string(*value) : ""; }};
}

OptionValue count_or_all(std::optional<int64_t>& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    if (text == "all") {
      value.reset();
    } else {
      value = read_integer(where, text, 1, INT64_MAX, " or \"all\"");
    }
  };
  return {"N|all", JsonType::count, set,
          [&value] { return value ? std::to_string(*value) : "all"; }};
}

OptionValue integers(std::vector<int64_t>& value, int64_t minimum) {
  const auto set = [&value, minimum](const std::string& where, const std::string& text) {
    std::vector<int64_t> numbers;
    for (const std::string& item : split(text)) {
      const auto number = parse_number<int64_t>(item);
      if (!number || *number < minimum) {
        throw ConfigError(where, str("must be comma-separated integers of at least ", minimum),
                          in_quotes(text), "write for example 700,500");
      }
      numbers.push_back(*number);
    }
    value = std::move(numbers);
  };
  const auto get = [&value] {
    std::vector<std::string> words;
    for (int64_t number : value) words.push_back(std::to_string(number));
    return join(words, ",");
  };
  return {"N,N,...", JsonType::integers, set, get};
}

OptionValue positive_number(std::optional<double>& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    value = read_positive(where, text);
  };
  return {"X", JsonType::number, set, [&value] { return value ? str(*value) : ""; }};
}

OptionValue positive_number(double& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    value = read_positive(where, text);
  };
  return {"X", JsonType::number, set, [&value] { return str(value); }};
}

OptionValue fraction(double& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    const auto number = parse_number<double>(text);
    if (!number || !(*number >= 0 && *number < 1)) {
      throw ConfigError(where, "must be a number of at least 0 and below 1", in_quotes(text),
                        "write for example 0.5");
    }
    value = *number;
  };
  return {"X", JsonType::number, set, [&value] { return str(value); }};
}

OptionValue mesh_dims(MeshDims& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    const std::optional<MeshDims> dims = read_mesh_dims(text);
    if (!dims) {
      throw ConfigError(where, "must name each dimension once, with a size of at least 1",
                        in_quotes(text), "write for example batch=4,model=2");
    }
    value = *dims;
  };
  return {"DIM=N,...", JsonType::sizes, set, [&value] { return to_string(value); }};
}

OptionValue input_file(std::string& value, const std::string& placeholder) {
  return path_value(value, placeholder, [](const std::string& where, const std::string& text) {
    std::error_code ignored;
    require_path(fs::exists(text, ignored) && !fs::is_directory(text, ignored), where,
                 "must name a file that exists", text, "check the path");
  });
}

OptionValue input_path(std::string& value) {
  return path_value(value, "PATH", [](const std::string& where, const std::string& text) {
    std::error_code ignored;
    require_path(fs::exists(text, ignored), where, "must name a file or folder that exists", text,
                 "check the path");
  });
}

OptionValue output_file(std::string& value, const std::string& placeholder,
                        std::vector<std::string> endings) {
  const auto check = [endings = std::move(endings)](const std::string& where,
                                                    const std::string& text) {
    const auto ends = [&](const std::string& ending) { return text.ends_with(ending); };
    require_path(endings.empty() || std::any_of(endings.begin(), endings.end(), ends), where,
                 "must end in one of " + quoted_list(endings), text, "name such a file");
    check_output(where, text);
  };
  return path_value(value, placeholder, check);
}

OptionValue folder_name(std::string& value) { return path_value(value, "DIR", check_folder); }

OptionValue input_folder(std::string& value) {
  return path_value(value, "DIR", [](const std::string& where, const std::string& text) {
    std::error_code ignored;
    require_path(fs::is_directory(text, ignored), where, "must name a folder that exists", text,
                 "check the path");
  });
}

OptionValue toggle(bool& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    if (text != "true" && text != "false") {
      throw ConfigError(where, "must be true or false", in_quotes(text), "write one of them");
    }
    value = text == "true";
  };
  return {"", JsonType::boolean, set, [&value] { return value ? "true" : "false"; }};
}

OptionValue toggle(std::optional<bool>& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    toggle(value.emplace()).set(where, text);
  };
  return {"", JsonType::boolean, set, [&value] { return !value ? "" : *value ? "true" : "false"; }};
}

}  // namespace tessera::app
