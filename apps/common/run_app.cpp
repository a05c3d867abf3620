#include "apps/common/run_app.hpp"

#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/reported_failure.hpp>
#include <tessera/framework/cluster/internal/collective_error.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::app {

using namespace detail;

namespace {

constexpr size_t max_error_text = 4000;
constexpr const char* out_of_memory = "out of memory. To fix: use a smaller batch or model.";

int report(const std::string& program, const std::string& text, int code = 1) {
  std::cout << std::flush;
  report_failure(text);
  std::cerr << program << ": error: " << one_line(text, max_error_text) << std::endl;
  return code;
}

int report(const std::string& program, const Interrupted& interrupted) {
  std::cout << std::flush;
  std::cerr << program << ": " << one_line(interrupted.what(), max_error_text) << std::endl;
  return 128 + interrupted.signal();
}

}  // namespace

int run_app(int argc, char** argv, const std::function<int(int, char**)>& main_function) {
  const std::string path = argc > 0 ? argv[0] : "";
  const std::string program = std::filesystem::path(path).filename().string();
  try {
    return main_function(argc, argv);
  } catch (const Interrupted& interrupted) {
    return report(program, interrupted);
  } catch (const CommError& error) {
    return report(program, error.what(), exit_of_lost_run);
  } catch (const RankFailures& error) {
    return report(program, error.what(), exit_of_lost_run);
  } catch (const Error& error) {
    return report(program, error.what());
  } catch (const std::bad_alloc&) {
    return report(program, out_of_memory);
  } catch (const std::exception& error) {
    // Keep the first line: libraries' texts may include a stack trace.
    const std::string text = error.what();
    const bool memory = text.find("can't allocate memory") != std::string::npos;
    if (memory) return report(program, out_of_memory);
    return report(program, text.substr(0, text.find('\n')));
  } catch (...) {
    return report(program, "an exception of unknown type");
  }
}

void fail_at_command(const std::string& app, const std::string& command,
                     const std::vector<std::string>& commands) {
  const std::string all_but_last = join({commands.data(), commands.size() - 1}, ", ");
  const std::string meant = nearest(command, commands);
  throw ConfigError("command line", "the command is " + all_but_last + " or " + commands.back(),
                    in_quotes(command),
                    meant.empty() ? "see " + app + " --help" : "write " + meant);
}

}  // namespace tessera::app
