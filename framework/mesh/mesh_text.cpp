#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// The items of a list; none of an empty text.
std::vector<std::string> items(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : split(text, ',');
}

int64_t parse_count(const std::string& text, const std::string& whole) {
  const bool sign = !text.empty() && text[0] == '-';
  const std::string digits = text.substr(sign ? 1 : 0);
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != digits.npos) {
    throw MeshError("mesh", "sizes and ids are whole numbers", in_quotes(whole),
                    "write for example batch=4,model=2");
  }
  return std::stoll(text);
}

MeshError unreadable_mesh(const std::string& text) {
  return MeshError("mesh", "a mesh is written name|dimensions|global ids|local ids|devices",
                   in_quotes(text), "use the text of Mesh::to_string()");
}

template <class T, class Text>
std::string join(const std::vector<T>& items, Text text) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i ? "," : "") + text(items[i]);
  return out;
}

}  // namespace

std::string Mesh::describe() const {
  std::string text;
  for (const auto& [dim, n] : dims()) text += str(text.empty() ? "" : ", ", dim, "=", n);
  return text;
}

std::string Mesh::to_string() const {
  std::vector<int64_t> all(static_cast<size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  const auto number = [](int64_t id) { return std::to_string(id); };
  return name() + "|" + tessera::to_string(dims()) + "|" + join(all, number) + "|" +
         join(local_ids(), number) + "|" +
         join(local_devices(), [](Device d) { return tessera::to_string(d); });
}

Mesh Mesh::from_string(const std::string& text) {
  const std::vector<std::string> fields = split(text, '|');
  if (fields.size() != 5) throw unreadable_mesh(text);
  State state;
  state.name = fields[0];
  state.dims = parse_mesh_dims(fields[1]);
  for (const auto& id : items(fields[3])) state.local_ids.push_back(parse_count(id, text));
  for (const auto& d : items(fields[4])) state.local_devices.push_back(device_from_string(d));
  const Mesh mesh = make(std::move(state));
  if (mesh.to_string() != text) throw unreadable_mesh(text);
  return mesh;
}

MeshDims parse_mesh_dims(const std::string& text) {
  MeshDims dims;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw MeshError("mesh", "a mesh is written name=size,name=size", in_quotes(text),
                      "write for example batch=4,model=2");
    }
    dims.emplace_back(part.substr(0, equals), parse_count(part.substr(equals + 1), text));
  }
  return dims;
}

std::string to_string(const MeshDims& dims) {
  std::string text;
  for (const auto& [dim, n] : dims) text += str(text.empty() ? "" : ",", dim, "=", n);
  return text;
}

}  // namespace tessera
