#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>

#include "apps/common/option.hpp"
#include "apps/common/run_app.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

constexpr const char* help =
    "Runs a program as several processes of this machine that train together.\n"
    "Usage: launch -n N [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "\n"
    "  -n, --processes N    number of processes; with --ps, number of workers\n"
    "  --ps K               also start a chief and K parameter servers\n"
    "  --evaluator          with --ps: also start an evaluator\n"
    "  --tf-config          describe the processes to each other by TF_CONFIG, as workers\n"
    "  --encrypt            the processes encrypt what they send each other, but for shared "
    "memory\n"
    "                       and NCCL\n"
    "  --elastic MIN:MAX    processes come and go while they train: losing one, or a restarted "
    "one's\n"
    "                       return, changes no bit with --world-size-invariant; fewer than MIN "
    "wait\n"
    "  --max-restarts K     restart all processes, up to K times, after one failed; with --ps a\n"
    "                       worker or evaluator alone, with --elastic any alone, up to K times "
    "each\n"
    "                       [default: 0]\n"
    "  --grace SECONDS      time for the others to exit after one failed, or after the end of\n"
    "                       the chief [default: 10]\n"
    "  -h, --help           print this text\n"
    "  --version            print the version\n"
    "\n"
    "PROGRAM is a path, an application beside this one, or a program in PATH. The processes find\n"
    "each other by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT or by TF_CONFIG, and\n"
    "authenticate with a shared secret (TESSERA_SECRET). Each line of their output is prefixed\n"
    "with \"[rank] \", with --ps with \"[worker 0] \"; none of them reads this program's\n"
    "input. A restarted program resumes from its checkpoints if it keeps any (--checkpoint-dir).\n"
    "With --ps the job ends with the chief, and continues as long as a worker is left. The exit\n"
    "code is that of the process that failed first.\n";

struct Arguments {
  bool help = false;
  bool evaluator = false;
  bool tf_config = false;
  bool encrypt = false;
  int64_t processes = 0;
  int64_t servers = 0;
  int64_t max_restarts = 0;
  int64_t grace = 10;
  int64_t min_processes = 0;
  int64_t max_processes = 0;
  std::vector<std::string> command;
};

/// Reads MIN:MAX.
void set_elastic(Arguments& arguments, const std::string& flag, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) {
    throw ConfigError(flag, "must be a minimum and a maximum of processes", in_quotes(text),
                      "write for example 2:4");
  }
  app::integer(arguments.min_processes, 1, 4096).set(flag, text.substr(0, colon));
  app::integer(arguments.max_processes, 1, 4096).set(flag, text.substr(colon + 1));
}

/// Sets the number of an option; returns false if `flag` is unknown.
bool set_number(Arguments& arguments, const std::string& flag, const std::string& text) {
  if (flag == "-n" || flag == "--processes") {
    app::integer(arguments.processes, 1, 4096).set(flag, text);
  } else if (flag == "--ps") {
    app::integer(arguments.servers, 1, 4096).set(flag, text);
  } else if (flag == "--max-restarts") {
    app::integer(arguments.max_restarts, 0, 1000000).set(flag, text);
  } else if (flag == "--grace") {
    app::integer(arguments.grace, 0, 86400).set(flag, text);
  } else if (flag == "--elastic") {
    set_elastic(arguments, flag, text);
  } else {
    return false;
  }
  return true;
}

/// Sets a switch; returns false if `flag` is unknown.
bool set_switch(Arguments& arguments, const std::string& flag) {
  if (flag == "-h" || flag == "--help") {
    arguments.help = true;
  } else if (flag == "--evaluator") {
    arguments.evaluator = true;
  } else if (flag == "--tf-config") {
    arguments.tf_config = true;
  } else if (flag == "--encrypt") {
    arguments.encrypt = true;
  } else {
    return false;
  }
  return true;
}

[[noreturn]] void fail_unknown(const std::string& flag) {
  const std::vector<std::string> known = {"--processes", "--ps",           "--evaluator",
                                          "--tf-config", "--encrypt",      "--elastic",
                                          "--grace",     "--max-restarts", "--help"};
  const std::string meant = nearest(flag, known);
  throw ConfigError("command line", "every option must be known", in_quotes(flag),
                    meant.empty() ? "see launch --help" : "write " + meant);
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  size_t at = 0;
  for (; at < words.size() && words[at].rfind('-', 0) == 0 && words[at] != "--"; ++at) {
    const std::string& argument = words[at];
    if (set_switch(arguments, argument)) continue;
    const size_t equal = argument.find('=');
    const std::string flag = argument.substr(0, equal);
    const bool separate = equal == argument.npos;
    const bool missing = separate && at + 1 == words.size();
    const std::string value = missing ? "" : separate ? words[at + 1] : argument.substr(equal + 1);
    if (!set_number(arguments, flag, value)) fail_unknown(flag);
    if (separate) ++at;
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
  if (arguments.evaluator && arguments.servers == 0) {
    throw ConfigError("--evaluator", "is a task beside parameter servers", "no --ps",
                      "write for example -n 2 --ps 2 --evaluator");
  }
  if (arguments.processes == 0) {
    throw ConfigError("-n", "must be given", "nothing", "write for example -n 4");
  }
  if (arguments.min_processes > 0 && (arguments.servers > 0 || arguments.tf_config)) {
    throw ConfigError("--elastic", "is for processes that all train together",
                      arguments.servers > 0 ? "--ps" : "--tf-config", "leave one of them out");
  }
  if (arguments.command.empty()) {
    throw ConfigError("command line", "ends with the program to run", "none",
                      "write for example launch -n 4 -- imdb train");
  }
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  arguments.command[0] = find_program(arguments.command[0], self.parent_path().string());
  return launch(arguments.command, {.processes = static_cast<int>(arguments.processes),
                                    .servers = static_cast<int>(arguments.servers),
                                    .evaluator = arguments.evaluator,
                                    .tf_config = arguments.tf_config,
                                    .encrypt = arguments.encrypt,
                                    .max_restarts = static_cast<int>(arguments.max_restarts),
                                    .min_processes = static_cast<int>(arguments.min_processes),
                                    .max_processes = static_cast<int>(arguments.max_processes),
                                    .grace = std::chrono::seconds(arguments.grace)});
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, launch_main); }
