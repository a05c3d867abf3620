#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::app {

/// What may stand for an option's value in a configuration file.
enum class JsonForm {
  text,      ///< a string
  integer,   ///< 3
  count,     ///< 3 or a string such as "all"
  number,    ///< 0.5
  boolean,   ///< true
  integers,  ///< [700, 500] or "700,500"
  sizes      ///< {"batch": 4, "model": 2} or "batch=4,model=2"
};

/// Reads a variable from text and writes it as text. The variable must outlive the option.
struct OptionValue {
  /// What help shows for the value, e.g. "N"; empty for a switch.
  std::string placeholder;
  JsonForm form = JsonForm::text;
  /// Assigns the value `text` stands for. Throws ConfigError naming `where`.
  std::function<void(const std::string& where, const std::string& text)> set;
  /// The present value as `set` reads it; empty if there is none.
  std::function<std::string()> get;
};

/// One option: the flag `--name` and, with '_' for '-', the key of a configuration file.
struct Option {
  std::string name;
  std::string group;
  std::string help;
  OptionValue value;
};

/// Any text.
OptionValue text(std::string& value, const std::string& placeholder);

/// One of several words.
OptionValue choice(std::string& value, std::vector<std::string> choices);

/// Comma-separated words out of `known`, one or more.
OptionValue words(std::vector<std::string>& value, const std::string& placeholder,
                  std::vector<std::string> known);

/// An integer in [minimum, maximum].
OptionValue integer(int64_t& value, int64_t minimum, int64_t maximum = INT64_MAX);

/// An integer of at least `minimum`, or absent.
OptionValue integer(std::optional<int64_t>& value, int64_t minimum, int64_t maximum = INT64_MAX);

/// An integer of at least 1, or the word "all", which leaves `value` empty.
OptionValue count_or_all(std::optional<int64_t>& value);

/// Comma-separated integers of at least `minimum`, one or more.
OptionValue integers(std::vector<int64_t>& value, int64_t minimum);

/// A finite number above zero, or absent.
OptionValue positive_number(std::optional<double>& value);

/// A finite number above zero.
OptionValue positive_number(double& value);

/// A number of at least 0 and below 1.
OptionValue fraction(double& value);

/// Mesh dimensions, "batch=4,model=2".
OptionValue mesh_dims(MeshDims& value);

/// A file to read; refused if there is none.
OptionValue input_file(std::string& value, const std::string& placeholder);

/// A file to write; refused unless its folder exists and can be written, and its name ends in one
/// of `endings`, if there are any.
OptionValue output_file(std::string& value, const std::string& placeholder,
                        std::vector<std::string> endings = {});

/// A folder to write to, made if there is none; refused if a file has its name.
OptionValue folder_name(std::string& value);

/// A folder to read; refused if there is none.
OptionValue input_folder(std::string& value);

/// A switch: `--name` turns it on and `--no-name` off.
OptionValue toggle(bool& value);

/// The same, or absent.
OptionValue toggle(std::optional<bool>& value);

}  // namespace tessera::app
