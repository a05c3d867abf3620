#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::app {

/// The JSON type of an option's value in a configuration file.
enum class JsonType {
  text,      ///< a string
  integer,   ///< 3
  count,     ///< 3 or a string such as "all"
  number,    ///< 0.5
  boolean,   ///< true
  integers,  ///< [700, 500] or "700,500"
  sizes      ///< {"batch": 4, "model": 2} or "batch=4,model=2"
};

/// Converts a variable from and to text. The variable must outlive the option.
struct OptionValue {
  /// Placeholder of the value in help, e.g. "N"; empty for a switch.
  std::string placeholder;
  JsonType json_type = JsonType::text;
  /// Parses `text` and assigns the variable. Throws ConfigError naming `where`.
  std::function<void(const std::string& where, const std::string& text)> set;
  /// Returns the current value in the format that `set` reads; empty if there is none.
  std::function<std::string()> get;
};

/// An option: the flag `--name` and, with '_' for '-', a key of the configuration file.
struct Option {
  std::string name;
  std::string group;
  std::string help;
  OptionValue value;
};

/// Takes any text.
OptionValue text(std::string& value, const std::string& placeholder);

/// Takes one of several words.
OptionValue choice(std::string& value, std::vector<std::string> choices);

/// Takes one or more comma-separated words from `known`.
OptionValue words(std::vector<std::string>& value, const std::string& placeholder,
                  std::vector<std::string> known);

/// Takes an integer in [minimum, maximum].
OptionValue integer(int64_t& value, int64_t minimum, int64_t maximum = INT64_MAX);

/// Takes an optional integer in [minimum, maximum].
OptionValue integer(std::optional<int64_t>& value, int64_t minimum, int64_t maximum = INT64_MAX);

/// Takes an integer of at least 1, or the word "all", which leaves `value` empty.
OptionValue count_or_all(std::optional<int64_t>& value);

/// Takes one or more comma-separated integers of at least `minimum`.
OptionValue integers(std::vector<int64_t>& value, int64_t minimum);

/// Takes an optional finite number above zero.
OptionValue positive_number(std::optional<double>& value);

/// Takes a finite number above zero.
OptionValue positive_number(double& value);

/// Takes a number in [0, 1).
OptionValue fraction(double& value);

/// Takes mesh dimensions, such as "batch=4,model=2".
OptionValue mesh_dims(MeshDims& value);

/// Takes the path of a file to read, which must exist.
OptionValue input_file(std::string& value, const std::string& placeholder);

/// Takes the path of a file or folder to read, which must exist.
OptionValue input_path(std::string& value);

/// Takes the path of a file to write. Its folder must exist and be writable, and its name must end
/// in one of `endings`, if there are any.
OptionValue output_file(std::string& value, const std::string& placeholder,
                        std::vector<std::string> endings = {});

/// Takes the path of a folder to write to, created if it does not exist. It must not name a file.
OptionValue folder_name(std::string& value);

/// Takes the path of a folder to read, which must exist.
OptionValue input_folder(std::string& value);

/// Makes a switch: `--name` turns it on and `--no-name` off.
OptionValue toggle(bool& value);

/// Makes an optional switch.
OptionValue toggle(std::optional<bool>& value);

}  // namespace tessera::app
