#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera::detail::hdf5 {

using Json = nlohmann::ordered_json;

/// Messages over the standard output: a letter, eight bytes of length with the lowest first, and so
/// many bytes. 'J': JSON; 'D': a part of the data asked for; 'E': a refusal, the last message.
void send(char kind, const void* bytes, size_t size);
void send(char kind, const std::string& text);
/// Over the standard input, a line; false at the end.
bool receive(std::string& line);

}  // namespace tessera::detail::hdf5
