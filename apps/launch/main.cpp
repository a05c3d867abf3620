#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/text.hpp>
#include <tessera/framework/cluster/launcher.hpp>

#include "apps/common/option.hpp"
#include "apps/common/run_app.hpp"

namespace {

using namespace tessera;

constexpr const char* help =
    "Runs a program as several processes of this machine that train together.\n"
    "Usage: launch -n N [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "\n"
    "  -n, --processes N    how many\n"
    "  --max-restarts K     start all again, up to K times, after one failed [default: 0]\n"
    "  --grace SECONDS      for the others to leave after one failed [default: 10]\n"
    "  -h, --help           print this text\n"
    "\n"
    "PROGRAM is a path, an application beside this one, or a program in PATH. Each process finds\n"
    "the others by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, and what it prints\n"
    "comes behind \"[rank] \"; none of them reads this program's input. A restarted program\n"
    "goes on from its checkpoints if it keeps some (--checkpoint-dir). The exit code is that of\n"
    "the rank that failed first.\n";

struct Arguments {
  bool help = false;
  int64_t processes = 0;
  int64_t max_restarts = 0;
  int64_t grace = 10;
  std::vector<std::string> command;
};

/// Sets the number that `flag` means; false if there is no such flag.
bool set_number(Arguments& arguments, const std::string& flag, const std::string& text) {
  if (flag == "-n" || flag == "--processes") {
    app::integer(arguments.processes, 1, 4096).set(flag, text);
  } else if (flag == "--max-restarts") {
    app::integer(arguments.max_restarts, 0, 1000000).set(flag, text);
  } else if (flag == "--grace") {
    app::integer(arguments.grace, 0, 86400).set(flag, text);
  } else {
    return false;
  }
  return true;
}

[[noreturn]] void fail_unknown(const std::string& flag) {
  const std::vector<std::string> known = {"--processes", "--max-restarts", "--grace", "--help"};
  const std::string meant = nearest(flag, known);
  throw ConfigError("command line", "there is no such option", in_quotes(flag),
                    meant.empty() ? "see launch --help" : "write " + meant);
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  size_t at = 0;
  for (; at < words.size() && words[at].rfind('-', 0) == 0 && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    arguments.help = word == "-h" || word == "--help";
    if (arguments.help) return arguments;
    const size_t equal = word.find('=');
    const std::string flag = word.substr(0, equal);
    const bool apart = equal == word.npos;
    const bool missing = apart && at + 1 == words.size();
    const std::string value = missing ? "" : apart ? words[at + 1] : word.substr(equal + 1);
    if (!set_number(arguments, flag, value)) fail_unknown(flag);
    if (apart) ++at;
  }
  if (at < words.size() && words[at] == "--") ++at;
  arguments.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  return arguments;
}

int launch_main(int argc, char** argv) {
  Arguments arguments = parse({argv + 1, argv + argc});
  if (arguments.help) {
    std::cout << help << std::flush;
    return 0;
  }
  if (arguments.processes == 0) {
    throw ConfigError("-n", "must be given", "nothing", "write for example -n 4");
  }
  if (arguments.command.empty()) {
    throw ConfigError("command line", "ends with the program to run", "none",
                      "write for example launch -n 4 -- imdb train");
  }
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  arguments.command[0] = find_program(arguments.command[0], self.parent_path().string());
  return launch(arguments.command, {.processes = static_cast<int>(arguments.processes),
                                    .max_restarts = static_cast<int>(arguments.max_restarts),
                                    .grace = std::chrono::seconds(arguments.grace)});
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, launch_main); }
