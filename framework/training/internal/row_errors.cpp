#include <tessera/framework/training/internal/row_errors.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

/// A row of the batch in an error's text, and where the text that names it ends.
struct NamedRow {
  int64_t row = 0;
  size_t end = 0;
  bool of_batch = false;  ///< whether the text says that it is a row of the batch
};

std::optional<NamedRow> number_after(const std::string& text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return std::nullopt;
  NamedRow named;
  const char* const first = text.data() + at + before.size();
  const auto [last, error] = std::from_chars(first, text.data() + text.size(), named.row);
  if (error != std::errc()) return std::nullopt;
  named.end = static_cast<size_t>(last - text.data());
  return named;
}

std::optional<NamedRow> row_in(const std::string& text) {
  if (auto named = number_after(text, " of the batch, row ")) {
    named->of_batch = true;
    return named;
  }
  if (text.rfind("[labels y", 0) != 0) return std::nullopt;
  if (auto named = number_after(text, " in row ")) return named;
  auto named = number_after(text, " at (");
  if (named) named->end = text.find(')', named->end) + 1;
  return named;
}

/// Throws the error with the number of its row in the data, if it names one; otherwise rethrows it.
template <class E>
[[noreturn]] void throw_with_row(const E& error, const BatchLoader& loader, int64_t batch,
                                 const std::string& data) {
  std::string text = error.what();
  const std::optional<NamedRow> named = row_in(text);
  if (!named) throw;
  std::string more = named->of_batch ? "" : " of the batch";
  if (!loader.data().stream()) {
    const std::vector<int64_t> rows = loader.rows(batch);
    const auto row = static_cast<size_t>(named->row);
    if (row < rows.size()) more += str(" (row ", rows[row], " of ", data, ")");
  }
  text.insert(named->end, more);
  throw E(text);
}

}  // namespace

void rethrow_with_row(const BatchLoader& loader, int64_t batch, const Mesh& mesh,
                      const std::string& data) {
  // Labels on GPUs are checked late, maybe in a later step.
  if (on_gpus(mesh)) throw;
  try {
    throw;
  } catch (const ConfigError& error) {
    throw_with_row(error, loader, batch, data);
  } catch (const StateError& error) {
    throw_with_row(error, loader, batch, data);
  }
}

}  // namespace tessera::detail
