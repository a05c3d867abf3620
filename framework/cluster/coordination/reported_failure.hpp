#pragma once

#include <functional>
#include <string>

namespace tessera::detail {

/// Reports why this process is about to end to the other processes of its run, if there are any.
void report_failure(const std::string& what);

/// Sets the function that report_failure() calls; null: none.
void set_failure_reporter(std::function<void(const std::string& what)> report);

}  // namespace tessera::detail
