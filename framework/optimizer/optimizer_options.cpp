#include <tessera/framework/optimizer/optimizer_options.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

class Checker {
 public:
  explicit Checker(const std::string& class_name) : where_(class_name) {}

  void not_negative(const char* what, const std::optional<double>& value) const {
    if (!value || *value >= 0) return;
    throw ConfigError(where_, str(what, " must be at least 0"), str(*value), "give a positive one");
  }

  void at_least(const char* what, const std::optional<int64_t>& value, int64_t minimum) const {
    if (!value || *value >= minimum) return;
    throw ConfigError(where_, str(what, " must be at least ", minimum), str(*value),
                      "give a larger one or leave it out");
  }

  void one_clipping(const BaseOptions& options) const {
    std::string received;
    int count = 0;
    const auto add = [&](const char* what, const std::optional<double>& value) {
      if (!value) return;
      received += str(count++ ? ", " : "", what, "=", *value);
    };
    add("clipnorm", options.clipnorm);
    add("clipvalue", options.clipvalue);
    add("global_clipnorm", options.global_clipnorm);
    if (count <= 1) return;
    throw ConfigError(where_, "at most one of clipnorm, clipvalue and global_clipnorm may be set",
                      received, "keep one of them");
  }

 private:
  const std::string& where_;
};

}  // namespace

void detail::check_base_options(const std::string& class_name, const BaseOptions& options) {
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

}  // namespace tessera
