#include "apps/common/app_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "apps/common/config_file.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/run_app.hpp"

namespace tessera::app {

using namespace detail;

namespace {

constexpr int64_t max_processes = 4096, max_seconds = 7 * 86400;

std::vector<Option> common_options(CommonOptions& o) {
  const std::string run = "Devices and layout";
  const std::string data = "Data";
  const std::string training = "Training";
  const std::string output = "Output";
  return {
      {"device", run, "device type; auto: GPUs if there are any",
       choice(o.device, {"auto", "cpu", "cuda"})},
      {"devices", run, "devices of this process; by default its share of the mesh",
       integer(o.devices, 1, max_devices)},
      {"virtual-devices", run, "mesh devices placed on each GPU",
       integer(o.virtual_devices, 1, max_devices)},
      {"mesh", run, "mesh dimensions and sizes, such as batch=4,model=2", mesh_dims(o.mesh)},
      {"layouts", run, "layout rules of weights and data", input_file(o.layouts, "FILE.json")},
      {"dtype", run, "dtype of weights and activations; mixed: of activations only",
       choice(o.dtype, {"float32", "float64", "mixed_bfloat16", "mixed_float16"})},
      {"matmul-precision", run, "precision of float32 products on GPUs; high: TF32",
       choice(o.matmul_precision, {"highest", "high"})},
      {"data-dir", data, "folder of the data files", input_folder(o.data_dir)},
      {"train-size", data, "training examples to use", count_or_all(o.train_size)},
      {"test-size", data, "test examples to use", count_or_all(o.test_size)},
      {"batch-size", training, "examples per step, over all devices", integer(o.batch_size, 1)},
      {"epochs", training, "passes over the training data", integer(o.epochs, 1)},
      {"steps-per-epoch", training, "steps per epoch; by default until the data end",
       integer(o.steps_per_epoch, 1)},
      {"learning-rate", training, "learning rate of the optimizer; by default the model's own",
       positive_number(o.learning_rate)},
      {"memory-limit", training, "bytes of a device that a step may need, checked before the first",
       positive_number(o.memory_limit)},
      {"peak-flops", training,
       "operations a second of one device: rates and their share of it (MFU) in the logs",
       positive_number(o.peak_flops)},
      {"shuffle", training, "shuffle the examples in every epoch", toggle(o.shuffle)},
      {"seed", training, "seed of shuffling and random numbers", integer(o.seed, 0)},
      {"history", output, "file for losses and metrics", output_file(o.history, "FILE.json")},
      {"plot", output, "plot of losses and metrics over the epochs",
       output_file(o.plot, "FILE.svg")},
      {"plot-model", output, "graph of the layers and their layouts: .dot, .svg or .png",
       output_file(o.plot_model, "FILE", {".dot", ".svg", ".png"})},
      {"tensorboard", output, "folder for TensorBoard's event files", folder_name(o.tensorboard)},
      {"profile", output, "profile training: print a table and write a trace for Perfetto",
       output_file(o.profile, "FILE.json")},
      {"summary", output, "print the layers and their layouts", toggle(o.summary)},
      {"plan", output, "print the memory and communication of a step", toggle(o.plan)},
      {"verbose", output, "silent, progress bar or one line per epoch", integer(o.verbose, 0, 2)},
  };
}

std::vector<Option> process_options(CommonOptions& o) {
  const std::string group = "Several processes";
  return {
      {"coordinator", group, "address where rank 0 listens; by default from the environment",
       text(o.coordinator, "HOST:PORT")},
      {"rank", group, "rank of this process", integer(o.rank, 0, max_processes - 1)},
      {"processes", group, "number of processes of the run",
       integer(o.processes, 1, max_processes)},
      {"insecure", group, "listen beyond this host without a secret, to any client",
       toggle(o.insecure)},
      {"encrypt", group,
       "encrypt what processes send each other, under the job's secret; refused for GPUs of "
       "several hosts",
       toggle(o.encrypt)},
      {"timeout", group, "seconds to wait for another process before giving up",
       integer(o.timeout, 1, max_seconds)},
      {"connect-timeout", group, "seconds to wait for all processes to connect",
       integer(o.connect_timeout, 1, max_seconds)},
      {"check-collectives", group,
       "compare every collective between processes, not only the first steps'",
       toggle(o.check_collectives)},
      {"world-size-invariant", group,
       "the same bits on any number of processes: sums of devices by a tree, a thread a device",
       toggle(o.world_size_invariant)},
      {"elastic-snapshot-every", group,
       "steps between two snapshots in memory, in a run of launch --elastic",
       integer(o.elastic_snapshot_every, 1)},
      {"shared-memory", group, "exchange tensors within a host through shared memory",
       toggle(o.shared_memory)},
  };
}

std::string help_text(const Option& option) {
  const std::string value = option.value.get();
  return option.help + (value.empty() ? "" : " [default: " + value + "]");
}

constexpr size_t help_width = 80, help_indent = 34;

/// Wraps a text to lines of at most `width`, at blanks outside brackets.
std::string wrapped(const std::string& text, size_t width) {
  std::string lines;
  size_t column = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t inside = text[from] == '[' ? text.find(']', from) : from;
    const size_t end = std::min(text.find(' ', inside), text.size());
    const size_t size = end - from;
    if (column > 0 && column + 1 + size > width) {
      lines += '\n';
      column = 0;
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines.append(text, from, size);
    column += size;
    from = end + 1;
  }
  return lines;
}

/// Formats help in narrow lines, without the defaults that CLI11 shows for both flags of a switch.
struct HelpFormatter : CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));
  }
  /// Shows the placeholder after a name, or nothing, but never CLI11's "TEXT REQUIRED".
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string& text = option->get_option_text();
    return text.empty() ? "" : " " + text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), help_width - help_indent);
  }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string text = CLI::Formatter::make_help(app, name, mode);
    return CLI::detail::find_and_replace(text, "\n\n\n", "\n\n");
  }
};

/// A positional argument: a required one, or any number.
struct Argument {
  std::string name;
  std::string help;
  std::string* value = nullptr;
  std::vector<std::string>* values = nullptr;
};

void declare(CLI::App& cli, const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) {
    CLI::Option* option = argument.value
                              ? cli.add_option(argument.name, *argument.value)->required()
                              : cli.add_option(argument.name, *argument.values);
    option->description(argument.help)->option_text(argument.value ? "" : "...");
  }
}

void declare(CLI::App& cli, const std::vector<Option>& options) {
  for (const Option& option : options) {
    const bool is_switch = option.value.json_type == JsonType::boolean;
    CLI::Option* flag =
        is_switch ? cli.add_flag("--" + option.name + ",!--no-" + option.name)
                  : cli.add_option("--" + option.name)->option_text(option.value.placeholder);
    flag->group(option.group)->description(help_text(option));
    flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  cli.add_option("--config")
      ->option_text("FILE.json")
      ->description("options from a file, with keys such as batch_size")
      ->group("General")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  cli.set_help_flag("-h,--help", "print this text")->group("General");
  cli.set_version_flag("--version", version_line(cli.get_name()), "print the version")
      ->group("General");
  cli.allow_extras();
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(help_indent);
  cli.formatter(formatter);
}

/// Returns the text of an option on the command line, if present.
std::optional<std::string> command_line_value(const CLI::App& cli, const std::string& flag) {
  const CLI::Option* option = cli.get_option(flag);
  if (option->count() == 0) return std::nullopt;
  const std::string text = option->results().back();
  // CLI11 takes the next word as the value, whatever it is.
  if (text.rfind("--", 0) == 0) {
    throw ConfigError(flag, "needs a value", in_quotes(text), "write the value after the option");
  }
  return text;
}

void refuse_extras(const CLI::App& cli, const std::vector<Option>& options) {
  std::vector<std::string> extras = cli.remaining();
  // The words after "--" have been taken as arguments.
  std::erase(extras, "--");
  if (extras.empty()) return;
  const std::string flag = extras[0].substr(0, extras[0].find('='));
  if (flag.rfind("-", 0) != 0) {
    throw ConfigError("command line", "every value follows its option", in_quotes(flag) + " alone",
                      options.empty()
                          ? "leave it out"
                          : "put an option such as --" + options.front().name + " before it");
  }
  std::vector<std::string> names{"--config", "--help", "--version"};
  for (const Option& option : options) {
    names.push_back("--" + option.name);
    if (option.value.json_type == JsonType::boolean) names.push_back("--no-" + option.name);
  }
  const std::string meant = nearest(flag, names);
  throw ConfigError("command line", "every option must be known", one_line(flag),
                    meant.empty() ? "see --help" : "write " + meant);
}

/// Parses the arguments. Returns the text that they ask for, if any: the help or the version.
std::optional<std::string> read_arguments(CLI::App& cli, int argc, const char* const* argv) {
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return cli.help();
  } catch (const CLI::CallForVersion& version) {
    return std::string(version.what()) + "\n";
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    throw ConfigError(text.substr(0, text.find(':')), "needs a value", "none",
                      "write the value after the option");
  } catch (const CLI::RequiredError& error) {
    const std::string text = error.what();
    throw ConfigError(text.substr(0, text.find(' ')), "must be given", "nothing", "see --help");
  } catch (const CLI::ParseError& error) {
    throw ConfigError("command line", error.what(), "", "see --help");
  }
  return std::nullopt;
}

}  // namespace

struct AppOptions::Impl {
  std::string name;
  std::string description;
  CommonOptions common;
  std::vector<Option> options;
  std::vector<Argument> arguments;
};

AppOptions::AppOptions(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AppOptions::AppOptions(const std::string& name, const std::string& description,
                       const std::vector<std::string>& left_out)
    : AppOptions(std::make_unique<Impl>(Impl{name, description, {}, {}, {}})) {
  impl_->options = common_options(impl_->common);
  for (Option& option : process_options(impl_->common)) add(std::move(option));
  std::erase_if(impl_->options, [&](const Option& option) {
    return std::find(left_out.begin(), left_out.end(), option.name) != left_out.end();
  });
}

AppOptions AppOptions::bare(const std::string& name, const std::string& description) {
  return AppOptions(std::make_unique<Impl>(Impl{name, description, {}, {}, {}}));
}

AppOptions::~AppOptions() = default;

CommonOptions& AppOptions::common() { return impl_->common; }

void AppOptions::add(Option option) { impl_->options.push_back(std::move(option)); }

void AppOptions::add_argument(const std::string& name, const std::string& help,
                              std::string& value) {
  impl_->arguments.push_back({.name = name, .help = help, .value = &value});
}

void AppOptions::add_arguments(const std::string& name, const std::string& help,
                               std::vector<std::string>& values) {
  impl_->arguments.push_back({.name = name, .help = help, .values = &values});
}

bool AppOptions::parse(int argc, const char* const* argv) { return parse(argc, argv, std::cout); }

bool AppOptions::parse(int argc, const char* const* argv, std::ostream& out) {
  CLI::App cli(impl_->description, impl_->name);
  declare(cli, impl_->options);
  declare(cli, impl_->arguments);
  if (const std::optional<std::string> text = read_arguments(cli, argc, argv)) {
    out << *text << std::flush;
    return false;
  }
  std::vector<std::optional<std::string>> texts;
  for (const Option& option : impl_->options) {
    texts.push_back(command_line_value(cli, "--" + option.name));
  }
  CommonOptions& common = impl_->common;
  common.config = command_line_value(cli, "--config").value_or("");
  refuse_extras(cli, impl_->options);
  if (!common.config.empty()) read_config_file(common.config, impl_->options);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i]) impl_->options[i].value.set("--" + impl_->options[i].name, *texts[i]);
  }
  if (!common.mesh.empty()) check_device_count(common, common.mesh);
  return true;
}

}  // namespace tessera::app
