#include <tessera/framework/cluster/membership/register_messages.hpp>

#include <algorithm>
#include <array>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {
namespace {

using Kind = RegisterMessage::Kind;

constexpr std::array<const char*, 8> kind_names = {"join",   "alive",      "leave",   "lost",
                                                   "finish", "membership", "refused", "expelled"};

bool has_reason(Kind kind) {
  return kind == Kind::lost || kind == Kind::refused || kind == Kind::expelled;
}

}  // namespace

std::string encode_message(const RegisterMessage& message) {
  Json json = {{"kind", kind_names.at(static_cast<size_t>(message.kind))},
               {"generation", message.generation}};
  if (message.kind == Kind::lost) json["id"] = message.id;
  if (has_reason(message.kind)) json["reason"] = message.reason;
  if (message.kind == Kind::join) json["member"] = to_json(message.member);
  if (message.kind == Kind::membership) json["membership"] = to_json(message.membership);
  return to_json_text(json, -1);
}

RegisterMessage decode_message(const std::string& body) {
  try {
    const Json json = parse_json(body, "message");
    const JsonPath path("message");
    JsonObject object(json, path);
    RegisterMessage message;
    const auto name = object.take<std::string>("kind");
    const auto found = std::find(kind_names.begin(), kind_names.end(), name);
    if (found == kind_names.end()) json_fail(name, path.key("kind"), "a kind of message");
    message.kind = static_cast<Kind>(found - kind_names.begin());
    message.generation = object.take<uint64_t>("generation");
    if (message.kind == Kind::lost) message.id = object.take<std::string>("id");
    if (has_reason(message.kind)) message.reason = object.take<std::string>("reason");
    if (message.kind == Kind::join) {
      message.member = member_from(object.take<Json>("member"), path.key("member"));
    }
    if (message.kind == Kind::membership) {
      message.membership = membership_from(object.take<Json>("membership"), path.key("membership"));
    }
    object.finish();
    return message;
  } catch (const ConfigError& error) {
    throw BadFrame(error.what());
  }
}

CoordinationOptions register_handshake(const std::string& job, const JobAccess& access,
                                       const std::string& address, int port) {
  CoordinationOptions options;
  options.rank = 1;
  options.size = 2;
  options.address = address;
  options.port = port;
  // Another name than that of the ranks' own control plane: neither admits the other's processes.
  options.job = job + "/members";
  options.access = access;
  return options;
}

}  // namespace tessera::detail
