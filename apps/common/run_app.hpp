#pragma once

#include <functional>

namespace tessera::app {

/// Runs an application's main function and returns its exit code. An exception becomes one line on
/// the standard error, `mnist: error: <text>` after the program's name, and exit code 1, or
/// exit_of_lost_run where another process is at fault; Interrupted a line without "error" and 128 +
/// its signal.
int run_app(int argc, char** argv, const std::function<int(int, char**)>& main_function);

}  // namespace tessera::app
