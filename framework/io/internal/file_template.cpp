#include <tessera/framework/io/internal/file_template.hpp>

#include <cstdio>
#include <vector>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/training/callbacks/internal/python_repr.hpp>

namespace tessera::detail {
namespace {

/// The value of a field.
struct Field {
  double value = 0;
  bool is_integer = false;
};

/// A parsed format such as "02d" or ".2f".
struct Format {
  bool zeros = false;
  int width = 0;
  int precision = 6;
  bool has_precision = false;
  char type = 0;
};

std::string padded(const std::string& digits, const Format& format) {
  const auto width = static_cast<size_t>(format.width);
  if (digits.size() >= width) return digits;
  const size_t missing = width - digits.size();
  if (!format.zeros) return std::string(missing, ' ') + digits;
  const size_t sign = digits[0] == '-' ? 1 : 0;
  return digits.substr(0, sign) + std::string(missing, '0') + digits.substr(sign);
}

std::string printed(double value, const Format& format) {
  const bool percent = format.type == '%';
  const char text[] = {'%', '.', '*', percent ? 'f' : format.type, 0};
  std::vector<char> buffer(512);
  std::snprintf(buffer.data(), buffer.size(), text, format.precision,
                percent ? value * 100 : value);
  return std::string(buffer.data()) + (percent ? "%" : "");
}

class Filler {
 public:
  Filler(const std::string& where, const std::string& text, int64_t epoch,
         std::optional<int64_t> batch, const Logs& logs)
      : where_(where), text_(text) {
    for (const auto& [name, value] : logs) fields_.emplace_back(name, Field{value});
    if (batch) fields_.emplace_back("batch", Field{static_cast<double>(*batch), true});
    fields_.emplace_back("epoch", Field{static_cast<double>(epoch), true});
  }

  std::string run() const {
    std::string out;
    for (size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c != '{' && c != '}') {
        out += c;
      } else if (i + 1 < text_.size() && text_[i + 1] == c) {
        out += c;
        ++i;
      } else {
        const size_t end = c == '{' ? text_.find('}', i) : std::string::npos;
        if (end == std::string::npos) fail("braces are balanced", "an unbalanced brace");
        out += filled(text_.substr(i + 1, end - i - 1));
        i = end;
      }
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    throw ConfigError(where_ + " " + in_quotes(text_, 200), expected, received,
                      "use names of the logs and formats such as {epoch:02d} or {val_loss:.2f}");
  }

  std::string filled(const std::string& inside) const {
    const size_t colon = inside.find(':');
    const Field field = field_of(inside.substr(0, colon));
    const std::string spec = colon == std::string::npos ? "" : inside.substr(colon + 1);
    const Format format = format_of(spec);
    const std::string integer = str(static_cast<int64_t>(field.value));
    if (format.type == 'd' && !field.is_integer) fail("format d requires an integer", inside);
    if (format.type == 'd' || (format.type == 0 && field.is_integer)) {
      if (format.has_precision) fail("integers have no precision", inside);
      return padded(integer, format);
    }
    if (format.type != 0) return padded(printed(field.value, format), format);
    if (format.has_precision) fail("a precision requires e, f, g or %", inside);
    return padded(python_repr(field.value), format);
  }

  Field field_of(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& [known, field] : fields_) {
      if (known == name) return field;
      names.push_back(known);
    }
    fail("names are among these values: " + quoted_list(names), in_quotes(name));
  }

  Format format_of(const std::string& spec) const {
    static const re2::RE2 pattern(R"((0?)(\d{0,2})(?:\.(\d{1,2}))?([defgEG%]?))");
    std::string zeros, width, precision, type;
    if (!re2::RE2::FullMatch(spec, pattern, &zeros, &width, &precision, &type)) {
      fail("a format consists of width, precision and type", spec);
    }
    Format format;
    format.zeros = !zeros.empty();
    if (!width.empty()) format.width = std::stoi(width);
    format.has_precision = !precision.empty();
    if (format.has_precision) format.precision = std::stoi(precision);
    if (!type.empty()) format.type = type[0];
    return format;
  }

  const std::string& where_;
  const std::string& text_;
  std::vector<std::pair<std::string, Field>> fields_;
};

}  // namespace

std::string fill_template(const std::string& where, const std::string& text, int64_t epoch,
                          std::optional<int64_t> batch, const Logs& logs) {
  return Filler(where, text, epoch, batch, logs).run();
}

}  // namespace tessera::detail
