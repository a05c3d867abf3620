#pragma once

#include <functional>
#include <string>

namespace tessera::detail {

/// Keeps why this process is about to end, for the others of its run to read; nothing if it is
/// alone.
void report_failure(const std::string& what);

/// Who tells the others: called by report_failure() from now on. Null: nobody.
void set_failure_reporter(std::function<void(const std::string& what)> tell);

}  // namespace tessera::detail
