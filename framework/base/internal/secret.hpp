#pragma once

#include <string>

namespace tessera::detail {

/// What a file holds that nobody but its owner may read, without the blanks around it. Throws
/// ConfigError naming `where`, which is what the file was given by, FileError, and as
/// check_secret().
std::string read_secret_file(const std::string& where, const std::string& path);

/// Throws ConfigError naming `where` for a secret that is too short, so that it could be guessed,
/// or too long; returns it.
std::string check_secret(const std::string& where, const std::string& secret);

/// Whether two texts are the same, in a time that does not tell where they differ.
bool same_secret(const std::string& one, const std::string& other);

}  // namespace tessera::detail
