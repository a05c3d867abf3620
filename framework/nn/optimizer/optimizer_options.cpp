#include <tessera/framework/nn/optimizer/optimizer_options.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
void take(JsonObject& config, const std::string& key, std::optional<T>& out) {
  if (config.has(key)) out = config.take_optional<T>(key);
}

class Checker {
 public:
  explicit Checker(const std::string& class_name) : where_(class_name) {}

  void not_negative(const char* what, const std::optional<double>& value) const {
    if (!value || *value >= 0) return;
    throw ConfigError(where_, str(what, " is a number of at least 0"), str(*value),
                      "give a positive one");
  }

  void at_least(const char* what, const std::optional<int64_t>& value, int64_t least) const {
    if (!value || *value >= least) return;
    throw ConfigError(where_, str(what, " is a whole number of at least ", least), str(*value),
                      "give a larger one or leave it out");
  }

  void one_clipping(const BaseOptions& options) const {
    std::string given;
    int count = 0;
    const auto add = [&](const char* what, const std::optional<double>& value) {
      if (!value) return;
      given += str(count++ ? ", " : "", what, "=", *value);
    };
    add("clipnorm", options.clipnorm);
    add("clipvalue", options.clipvalue);
    add("global_clipnorm", options.global_clipnorm);
    if (count <= 1) return;
    throw ConfigError(where_, "one of clipnorm, clipvalue and global_clipnorm at most", given,
                      "keep one of them");
  }

 private:
  const std::string& where_;
};

}  // namespace

void check_base_options(const std::string& class_name, const BaseOptions& options) {
  const Checker check(class_name);
  check.not_negative("weight_decay", options.weight_decay);
  check.not_negative("clipnorm", options.clipnorm);
  check.not_negative("clipvalue", options.clipvalue);
  check.not_negative("global_clipnorm", options.global_clipnorm);
  check.one_clipping(options);
  check.at_least("gradient_accumulation_steps", options.gradient_accumulation_steps, 2);
  if (options.loss_scale_factor && !(*options.loss_scale_factor > 0)) {
    throw ConfigError(class_name, "loss_scale_factor is positive", str(*options.loss_scale_factor),
                      "use a power of 2 such as 1024");
  }
  if (!options.use_ema) return;
  check.at_least("ema_overwrite_frequency", options.ema_overwrite_frequency, 1);
  if (options.ema_momentum >= 0 && options.ema_momentum <= 1) return;
  throw ConfigError(class_name, "ema_momentum lies in [0, 1]", str(options.ema_momentum),
                    "use 0.99");
}

void add_base_config(const BaseOptions& options, Json& config) {
  config["weight_decay"] = or_null(options.weight_decay);
  config["clipnorm"] = or_null(options.clipnorm);
  config["global_clipnorm"] = or_null(options.global_clipnorm);
  config["clipvalue"] = or_null(options.clipvalue);
  config["use_ema"] = options.use_ema;
  config["ema_momentum"] = options.ema_momentum;
  config["ema_overwrite_frequency"] = or_null(options.ema_overwrite_frequency);
  config["loss_scale_factor"] = or_null(options.loss_scale_factor);
  config["gradient_accumulation_steps"] = or_null(options.gradient_accumulation_steps);
}

void take_base_options(JsonObject& config, BaseOptions& options) {
  options.name = config.take_or("name", options.name);
  take(config, "weight_decay", options.weight_decay);
  take(config, "clipnorm", options.clipnorm);
  take(config, "global_clipnorm", options.global_clipnorm);
  take(config, "clipvalue", options.clipvalue);
  options.use_ema = config.take_or("use_ema", options.use_ema);
  options.ema_momentum = config.take_or("ema_momentum", options.ema_momentum);
  take(config, "ema_overwrite_frequency", options.ema_overwrite_frequency);
  take(config, "loss_scale_factor", options.loss_scale_factor);
  take(config, "gradient_accumulation_steps", options.gradient_accumulation_steps);
}

}  // namespace tessera
