#include <tessera/framework/mesh/mesh.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>
#include <tessera/framework/mesh/internal/view.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr size_t max_dims = 16;
constexpr int64_t max_devices = 65536;

void check_dims(const MeshDims& dims) {
  if (dims.empty() || dims.size() > max_dims) {
    throw MeshError("mesh", str("a mesh has 1 to ", max_dims, " dimensions"),
                    str(dims.size(), " dimensions"), "name at least one, for example batch=8");
  }
  std::set<std::string> seen;
  int64_t product = 1;
  for (const auto& [name, size] : dims) {
    if (name.empty() || name == "unsharded" || name.find_first_of(" ,=|:()") != name.npos) {
      throw MeshError("mesh", "a dimension's name is a plain word other than \"unsharded\"",
                      in_quotes(name), "use a name like batch or model");
    }
    if (!seen.insert(name).second) {
      throw MeshError("mesh", "dimension names are unique", in_quotes(name) + " twice",
                      "give each dimension its own name");
    }
    if (size < 1 || size > max_devices || (product *= size) > max_devices) {
      throw MeshError("mesh", str("sizes are at least 1 and multiply to at most ", max_devices),
                      to_string(dims), "choose smaller sizes");
    }
  }
}

MeshDims with_inferred_size(MeshDims dims, int64_t devices) {
  int64_t known = 1;
  int64_t* inferred = nullptr;
  for (auto& [name, size] : dims) {
    if (size > max_devices || known > max_devices) return dims;
    if (size == -1 && inferred) {
      throw MeshError("mesh", "at most one dimension may be -1", to_string(dims),
                      "write the other sizes out");
    }
    if (size == -1) inferred = &size;
    known *= std::max<int64_t>(1, size);
  }
  if (!inferred) return dims;
  if (devices < 1 || devices % known != 0) {
    throw MeshError("mesh", str("the other sizes of ", to_string(dims), " divide the devices"),
                    str(devices, " devices"), "give a number of devices that they divide");
  }
  *inferred = devices / known;
  return dims;
}

}  // namespace

Mesh Mesh::make(State state) {
  check_dims(state.dims);
  if (state.name.find('|') != state.name.npos) {
    throw MeshError("mesh", "a mesh's name has no \"|\"", in_quotes(state.name),
                    "use a plain word");
  }
  state.size = 1;
  for (const auto& [name, size] : state.dims) {
    state.size *= size;
    state.hash = mix(state.hash, std::hash<std::string>{}(name));
    state.hash = mix(state.hash, static_cast<size_t>(size));
  }
  for (int64_t id : state.local_ids) state.hash = mix(state.hash, static_cast<size_t>(id));
  if (!state.root) {
    state.box.clear();
    for (const auto& dim : state.dims) state.box.push_back({0, dim.second});
  }
  state.devices = 1;
  for (Interval side : state.box) {
    state.devices *= side.size();
    if (state.root) state.hash = mix(state.hash, static_cast<size_t>(side.lo));
  }
  const Mesh mesh(std::make_shared<const State>(state));
  const std::vector<int64_t>& ids = state.local_ids;
  if (ids.empty() && state.local_devices.empty()) {
    state.local_box.assign(state.dims.size(), {0, 0});
    return Mesh(std::make_shared<const State>(std::move(state)));
  }
  std::vector<Interval> box(state.dims.size(), {max_devices, 0});
  for (int64_t id : ids) {
    const std::vector<int64_t> at = mesh.coordinates(id);
    for (size_t d = 0; d < at.size(); ++d) {
      box[d] = {std::min(box[d].lo, at[d]), std::max(box[d].hi, at[d] + 1)};
    }
  }
  size_t volume = 1;
  for (Interval side : box) volume *= static_cast<size_t>(side.size());
  const bool ascending =
      std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
  const bool inside = !ids.empty() && ascending && ids.front() >= 0 && ids.back() < state.size;
  if (!inside || volume != ids.size() || ids.size() != state.local_devices.size()) {
    throw MeshError("mesh", "a process's devices fill a box of the mesh, their ids ascending",
                    str("mesh ", mesh.describe(), ", ids ", tessera::to_string(ids), ", ",
                        state.local_devices.size(), " devices"),
                    "give each process one device per id, the ids neighbours in the mesh");
  }
  if (!state.root && state.hosting &&
      state.hosting->devices_of(state.hosting->owner(ids.front())) != ids) {
    throw MeshError("mesh", "a process holds all devices that the hosting gives to one rank",
                    str("mesh ", mesh.describe(), ", ids ", tessera::to_string(ids)),
                    "pass Hosting::devices_of() of this process's rank");
  }
  state.local_box = std::move(box);
  return Mesh(std::make_shared<const State>(std::move(state)));
}

std::vector<std::string> Mesh::dim_names() const {
  std::vector<std::string> names;
  for (const auto& dim : dims()) names.push_back(dim.first);
  return names;
}

int Mesh::find(const std::string& dim) const {
  for (size_t d = 0; d < state().dims.size(); ++d) {
    if (state().dims[d].first == dim) return static_cast<int>(d);
  }
  return -1;
}

int Mesh::index(const std::string& dim) const {
  const int position = find(dim);
  if (position >= 0) return position;
  throw MeshError("mesh", "the mesh has no dimension " + in_quotes(dim), "mesh " + describe(),
                  suggestion(dim, dim_names()));
}

int64_t Mesh::size_of(DimMask dims) const {
  int64_t product = 1;
  for (int d = 0; d < rank(); ++d) product *= (dims >> d & 1) ? dim_size(d) : 1;
  return product;
}

std::string Mesh::names(DimMask mask) const {
  std::string text;
  for (int d = 0; d < rank(); ++d) {
    if (mask >> d & 1) text += (text.empty() ? "" : ",") + dims()[static_cast<size_t>(d)].first;
  }
  return text;
}

std::vector<int64_t> Mesh::coordinates(int64_t id) const {
  std::vector<int64_t> at(state().dims.size());
  for (size_t d = at.size(); d-- > 0;) {
    at[d] = id % state().dims[d].second;
    id /= state().dims[d].second;
  }
  return at;
}

int64_t Mesh::id(const std::vector<int64_t>& coordinates) const {
  int64_t id = 0;
  for (size_t d = 0; d < coordinates.size(); ++d) id = id * dims()[d].second + coordinates[d];
  return id;
}

Mesh Mesh::view(const MeshDims& coordinates) const {
  State view = state();
  for (const auto& [name, coordinate] : coordinates) {
    const int dim = index(name);
    const Interval all = box()[static_cast<size_t>(dim)];
    if (coordinate < all.lo || coordinate >= all.hi) {
      throw MeshError("mesh",
                      str("the coordinates along ", name, " are in [", all.lo, ", ", all.hi, ")"),
                      str(name, " ", coordinate, " of mesh ", describe()),
                      "pass a coordinate that the mesh or view has");
    }
    if (dim_size(dim) == 1) continue;
    view.box[static_cast<size_t>(dim)] = {coordinate, coordinate + 1};
    view.fixed |= DimMask{1} << dim;
  }
  if (view.fixed == state().fixed) return *this;
  if (!view.root) view.root = state_;
  view.hash = 0;
  view.local_ids.clear();
  view.local_devices.clear();
  for (size_t i = 0; i < local_ids().size(); ++i) {
    const std::vector<int64_t> at = this->coordinates(local_ids()[i]);
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      inside = inside && at[d] >= view.box[d].lo && at[d] < view.box[d].hi;
    }
    if (!inside) continue;
    view.local_ids.push_back(local_ids()[i]);
    view.local_devices.push_back(local_devices()[i]);
  }
  return make(std::move(view));
}

Mesh Mesh::sub_mesh(const std::vector<std::string>& names) const {
  if (is_view()) {
    // The sub-mesh of the whole mesh through the view's first device, and the view of that.
    MeshDims fixed = fixed_coordinates(*this);
    std::erase_if(fixed, [&](const auto& at) {
      return std::find(names.begin(), names.end(), at.first) == names.end();
    });
    return sub_mesh_through(local_ids().empty() ? device_ids(*this).front() : local_ids().front(), names)
        .view(fixed);
  }
  return sub_mesh_through(local_ids().empty() ? 0 : local_ids().front(), names);
}

Mesh Mesh::sub_mesh_through(int64_t device, const std::vector<std::string>& names) const {
  if (is_view()) return root().sub_mesh_through(device, names);
  State sub;
  sub.name = name();
  sub.communicator = communicator();
  DimMask retained = 0;
  for (const std::string& dim : names) retained |= 1u << index(dim);
  for (int d = 0; d < rank(); ++d) {
    if (retained >> d & 1) sub.dims.push_back(dims()[static_cast<size_t>(d)]);
  }
  const std::vector<int64_t> first = coordinates(device);
  // The ids of the sub-mesh are in the order of the mesh's.
  std::vector<int> owners;
  for (int64_t id = 0; state().hosting && id < size(); ++id) {
    const std::vector<int64_t> at = coordinates(id);
    bool inside = true;
    for (int d = 0; d < rank(); ++d) {
      const size_t axis = static_cast<size_t>(d);
      inside = inside && ((retained >> d & 1) || at[axis] == first[axis]);
    }
    if (inside) owners.push_back(state().hosting->owner(id));
  }
  if (state().hosting) sub.hosting = std::make_shared<const Hosting>(sub.dims, std::move(owners));
  for (size_t i = 0; i < local_ids().size(); ++i) {
    const std::vector<int64_t> at = coordinates(local_ids()[i]);
    int64_t id = 0;
    bool inside = true;
    for (int d = 0; d < rank(); ++d) {
      const size_t axis = static_cast<size_t>(d);
      if (retained >> d & 1) {
        id = id * dim_size(d) + at[axis];
      } else {
        inside = inside && at[axis] == first[axis];
      }
    }
    if (!inside) continue;
    sub.local_ids.push_back(id);
    sub.local_devices.push_back(local_devices()[i]);
  }
  return make(std::move(sub));
}

bool Mesh::operator==(const Mesh& other) const {
  if (state_ == other.state_) return true;
  if (!state_ || !other.state_ || state().hash != other.state().hash) return false;
  const Hosting *mine = state().hosting.get(), *theirs = other.state().hosting.get();
  if (mine != theirs && (!mine || !theirs || mine->owners() != theirs->owners())) return false;
  return state().dims == other.state().dims && state().local_ids == other.state().local_ids &&
         state().local_devices == other.state().local_devices &&
         state().communicator == other.state().communicator &&
         state().weight_placement == other.state().weight_placement &&
         state().name == other.state().name && state().box == other.state().box &&
         (!is_view() || root() == other.root());
}

Mesh create_mesh(const MeshDims& dims, const std::vector<Device>& devices,
                 const std::string& name) {
  Mesh::State state;
  state.name = name;
  state.dims = with_inferred_size(dims, static_cast<int64_t>(devices.size()));
  check_dims(state.dims);
  int64_t size = 1;
  for (const auto& dim : state.dims) size *= dim.second;
  state.local_devices = devices.empty() ? virtual_cpus(size) : devices;
  if (static_cast<int64_t>(state.local_devices.size()) != size) {
    throw MeshError("mesh", str("the mesh ", to_string(state.dims), " needs ", size, " devices"),
                    str(devices.size(), " devices"),
                    "change the mesh's sizes or the number of devices");
  }
  for (int64_t id = 0; id < size; ++id) state.local_ids.push_back(id);
  return Mesh::make(std::move(state));
}

Mesh create_mesh_part(const MeshDims& dims, const std::vector<int64_t>& local_ids,
                      const std::vector<Device>& local_devices,
                      std::shared_ptr<Communicator> communicator, const std::string& name,
                      std::shared_ptr<const Hosting> hosting) {
  Mesh::State state;
  state.name = name;
  state.dims = dims;
  state.local_ids = local_ids;
  state.local_devices = local_devices;
  state.communicator = std::move(communicator);
  state.hosting = std::move(hosting);
  return Mesh::make(std::move(state));
}

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

/// Splits a list at its commas; an empty text has no items.
std::vector<std::string> items(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : split(text, ',');
}

int64_t parse_count(const std::string& text, const std::string& mesh_text) {
  const bool sign = !text.empty() && text[0] == '-';
  const std::string digits = text.substr(sign ? 1 : 0);
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != digits.npos) {
    throw MeshError("mesh", "sizes and ids are integers", in_quotes(mesh_text),
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
  std::string at;
  for (const auto& [dim, i] : fixed_coordinates(*this)) {
    at += str(at.empty() ? " at " : ", ", dim, " ", i);
  }
  return text + at;
}

std::string Mesh::to_string() const {
  const auto number = [](int64_t id) { return std::to_string(id); };
  return name() + "|" + tessera::to_string(dims()) + "|" + join(device_ids(*this), number) + "|" +
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
  const Mesh whole = make(std::move(state));
  // A view is written with the ids of its devices.
  MeshDims first;
  const std::vector<std::string> ids = items(fields[2]);
  if (!ids.empty() && std::ssize(ids) < whole.size()) {
    const int64_t id = parse_count(ids.front(), text);
    if (id < 0 || id >= whole.size()) throw unreadable_mesh(text);
    const std::vector<int64_t> from = whole.coordinates(id);
    const std::vector<int64_t> to =
        whole.coordinates(std::min(parse_count(ids.back(), text), whole.size() - 1));
    for (size_t d = 0; d < from.size(); ++d) {
      if (from[d] == to[d]) first.emplace_back(whole.dims()[d].first, from[d]);
    }
  }
  const Mesh mesh = whole.view(first);
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
