#include <tessera/framework/parameter_server/job/job_name.hpp>

#include <random>
#include <string_view>

namespace tessera::detail {

namespace {
constexpr std::string_view digits = "0123456789abcdef";
constexpr size_t digits_of_name = 16;
}  // namespace

std::string make_job_name() {
  std::random_device device;
  std::string name;
  while (name.size() < digits_of_name) name += digits[device() % digits.size()];
  return name;
}

bool is_job_name(const std::string& text) {
  return text.size() == digits_of_name && text.find_first_not_of(digits) == std::string::npos;
}

}  // namespace tessera::detail
