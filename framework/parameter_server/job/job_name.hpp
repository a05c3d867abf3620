#pragma once

#include <string>

namespace tessera::detail {

/// Generates a random job name of 16 hexadecimal digits.
std::string make_job_name();
bool is_job_name(const std::string& text);

}  // namespace tessera::detail
