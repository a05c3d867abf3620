#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/training/logs.hpp>

namespace tessera::detail {

/// Fills values into a path with "{name}" or "{name:format}" fields, as Python's str.format does:
/// "{epoch:02d}-{val_loss:.2f}". `epoch` and `batch` are integers and count from 1; all other names
/// are keys of `logs`. Formats have a width, a precision and d, e, f, g or %; "{{" and "}}" are
/// braces. Throws ConfigError naming `where` for an unknown name or a format that does not fit.
std::string fill_template(const std::string& where, const std::string& text, int64_t epoch,
                          std::optional<int64_t> batch, const Logs& logs);

}  // namespace tessera::detail
