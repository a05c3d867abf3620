#include <iostream>

#include "apps/common/run_app.hpp"
#include "apps/gpt/train.hpp"

namespace {

using namespace tessera;

constexpr const char* help =
    "Writes film reviews: Keras' miniature GPT, or a larger one, trained on any mesh.\n"
    "Usage: gpt [train] [OPTIONS]                  train; prints a text after each epoch\n"
    "       gpt generate FOLDER [TEXT...]          continue texts\n"
    "       gpt serve FOLDER --port N              continue texts over HTTP\n"
    "\n"
    "gpt train --save FOLDER writes the model for generate and serve. Each command has a --help.\n";

int gpt_main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h") {
    std::cout << help << std::flush;
    return 0;
  }
  if (command.empty() || command[0] == '-') return gpt::train_main(argc, argv);
  // Shift the arguments: the command becomes argv[0].
  if (command == "train") return gpt::train_main(argc - 1, argv + 1);
  if (command == "generate") return gpt::generate_main(argc - 1, argv + 1);
  if (command == "serve") return gpt::serve_main(argc - 1, argv + 1);
  app::fail_at_command("gpt", command, {"train", "generate", "serve"});
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, gpt_main); }
