#pragma once

#include <string>
#include <vector>

#include <tessera/datasets/files/json_lines.hpp>

namespace tessera::datasets {

/// Reads documents from a JSON Lines file, one JSON object a line, compressed if its name ends in
/// .gz. Keys are "messages", a chat of objects with "role" and "content"; or else "prompt" and
/// "completion"; or else "text". Other keys and empty lines are ignored.
///
///     {"text": "A mesh is a grid of devices."}
///     {"prompt": "The capital of France is", "completion": " Paris."}
///     {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
///
/// Throws FileError if it cannot be read or has no document, ConfigError naming the line.
std::vector<TrainingDocument> read_json_lines(const std::string& path);

}  // namespace tessera::datasets
