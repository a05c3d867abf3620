#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera::detail::hdf5 {

using Json = nlohmann::ordered_json;

/// Sends a message on standard output: a letter, the length as eight bytes in little-endian order,
/// and the bytes. 'J': JSON; 'D': a part of the requested data; 'E': a refusal, the last message.
void send(char kind, const void* bytes, size_t size);
void send(char kind, const std::string& text);
/// Receives a line from standard input. Returns false at its end.
bool receive(std::string& line);

}  // namespace tessera::detail::hdf5
