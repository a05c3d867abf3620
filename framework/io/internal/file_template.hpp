#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/training/logs.hpp>

namespace tessera::detail {

/// A path with values filled in where it has "{name}" or "{name:format}", as Python's str.format
/// does: "{epoch:02d}-{val_loss:.2f}". `epoch` and `batch` count from 1 and are whole numbers;
/// every other name is one of `logs`. Formats have a width, a precision and d, e, f, g or %; "{{"
/// and "}}" are braces. Throws ConfigError naming `where` for a name that there is none of, or a
/// format that does not fit.
std::string fill_template(const std::string& where, const std::string& text, int64_t epoch,
                          std::optional<int64_t> batch, const Logs& logs);

}  // namespace tessera::detail
