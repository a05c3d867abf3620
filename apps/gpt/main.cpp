#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "apps/common/run_app.hpp"
#include "apps/gpt/train.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

constexpr const char* help =
    "Writes film reviews: Keras' miniature GPT, or a larger one, trained on any mesh.\n"
    "Usage: gpt [train] [OPTIONS]                  train; prints a text after each epoch\n"
    "       gpt generate FOLDER [TEXT...]          go on with texts\n"
    "       gpt serve FOLDER --port N              go on with texts that requests bring\n"
    "\n"
    "gpt train --save FOLDER writes what generate and serve take. Each command has a --help.\n";

int gpt_main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h") {
    std::cout << help << std::flush;
    return 0;
  }
  if (command.empty() || command[0] == '-') return gpt::train_main(argc, argv);
  // The command takes the program's place among the arguments.
  if (command == "train") return gpt::train_main(argc - 1, argv + 1);
  if (command == "generate") return gpt::generate_main(argc - 1, argv + 1);
  if (command == "serve") return gpt::serve_main(argc - 1, argv + 1);
  const std::string meant =
      nearest(command, std::vector<std::string>{"train", "generate", "serve"});
  throw ConfigError("command line", "the command is train, generate or serve", in_quotes(command),
                    meant.empty() ? "see gpt --help" : "write " + meant);
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, gpt_main); }
