#include <tessera/framework/serving/http/number_lists.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace tessera::detail {
namespace {

/// A decimal number m * 10^e is computed by one rounded operation if m and 10^|e| are doubles.
constexpr uint64_t max_exact = uint64_t{1} << 53;
constexpr std::array<double, 23> powers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
/// The number of digits that fit into 64 bits.
constexpr int max_digits = 19;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Every member function that returns false has met something for the general parser.
class NumberReader {
 public:
  NumberReader(std::string_view body, const PredictLimits& limits)
      : at_(body.data()), end_(body.data() + body.size()), limits_(limits) {}

  bool read() {
    if (!take('{') || !key() || !take(':') || !take('[') || !list(1)) return false;
    if (!take('}')) return false;
    skip_blanks();
    return at_ == end_;
  }

  PredictRequest take_request() { return std::move(request_); }

 private:
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  /// Skips blanks and, if it is next, this character.
  bool take(char expected) {
    skip_blanks();
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  bool key() {
    skip_blanks();
    const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    constexpr std::string_view by_row = "\"instances\"", by_column = "\"inputs\"";
    request_.columnar = rest.starts_with(by_column);
    if (!request_.columnar && !rest.starts_with(by_row)) return false;
    at_ += request_.columnar ? by_column.size() : by_row.size();
    return true;
  }

  /// Reads a list behind its bracket; the outermost has depth 1.
  bool list(size_t depth) {
    if (depth > limits_.depth || (leaf_depth_ != 0 && depth > leaf_depth_)) return false;
    int64_t count = 0;
    do {
      if (take('[') ? !list(depth + 1) : !number(depth)) return false;
      if (++count > limits_.instances && depth == 1) return false;
    } while (take(','));
    Shape& shape = request_.shape;
    // Inner lists end first, so the shape has their extents already.
    if (shape.size() < depth) shape.resize(depth, 0);
    int64_t& extent = shape[depth - 1];
    if (extent == 0) extent = count;
    return extent == count && take(']');
  }

  bool number(size_t depth) {
    if (leaf_depth_ == 0) leaf_depth_ = depth;
    double value = 0;
    if (leaf_depth_ != depth || !decimal(value)) return false;
    if (std::abs(value) > std::numeric_limits<float>::max()) return false;
    request_.values.push_back(static_cast<float>(value));
    return true;
  }

  /// Reads digits; returns their number.
  int digits(uint64_t& mantissa) {
    const char* const first = at_;
    for (; at_ != end_ && is_digit(*at_); ++at_) {
      mantissa = mantissa * 10 + static_cast<uint64_t>(*at_ - '0');
    }
    return static_cast<int>(at_ - first);
  }

  /// Reads a number as JSON writes it: no plus, no leading zeros, digits around a point.
  bool decimal(double& value) {
    const char* const first = at_;
    const bool negative = at_ != end_ && *at_ == '-';
    if (negative) ++at_;
    const bool zero = at_ != end_ && *at_ == '0';
    uint64_t mantissa = 0;
    int count = digits(mantissa), exponent = 0;
    if (count == 0 || (zero && count > 1)) return false;
    bool integer = true;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      integer = false;
      exponent = -digits(mantissa);
      if (exponent == 0) return false;
      count -= exponent;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      integer = false;
      if (!scale(exponent)) return false;
    }
    const auto size = static_cast<int>(powers.size());
    const bool exact = count <= max_digits && mantissa <= max_exact && std::abs(exponent) < size;
    if (!exact) {
      const std::from_chars_result result = std::from_chars(first, at_, value);
      return result.ec == std::errc() && result.ptr == at_;
    }
    value = static_cast<double>(mantissa);
    if (exponent < 0) value /= powers[static_cast<size_t>(-exponent)];
    if (exponent > 0) value *= powers[static_cast<size_t>(exponent)];
    // There is no integer -0.
    if (negative && !(integer && mantissa == 0)) value = -value;
    return true;
  }

  /// Reads an exponent and adds it.
  bool scale(int& exponent) {
    ++at_;
    const bool negative = at_ != end_ && *at_ == '-';
    if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
    uint64_t added = 0;
    const int count = digits(added);
    // More digits than any double needs.
    if (count == 0 || count > 4) return false;
    exponent += negative ? -static_cast<int>(added) : static_cast<int>(added);
    return true;
  }

  const char* at_;
  const char* end_;
  const PredictLimits& limits_;
  size_t leaf_depth_ = 0;  ///< depth of the numbers; 0 before the first
  PredictRequest request_;
};

}  // namespace

std::optional<PredictRequest> parse_number_lists(std::string_view body,
                                                 const PredictLimits& limits) {
  if (limits.inputs.size() > 1) return std::nullopt;
  NumberReader reader(body, limits);
  if (!reader.read()) return std::nullopt;
  return reader.take_request();
}

}  // namespace tessera::detail
