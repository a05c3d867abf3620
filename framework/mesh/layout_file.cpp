#include <tessera/framework/mesh/layout_file.hpp>

#include <utility>

namespace tessera {

using namespace detail;

namespace {

AxisSpec read_axis(const Json& json, const JsonPath& path) {
  if (json.is_null()) return nullptr;
  if (json.is_string()) return json_as<std::string>(json, path);
  if (!json.is_array()) {
    json_fail(json, path, "null, a mesh dimension's name or a list of such names");
  }
  const auto dims = json_as<std::vector<std::string>>(json, path);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == unsharded) json_fail(json[i], path.index(i), "the name of a mesh dimension");
  }
  return AxisSpec(dims);
}

LayoutSpec read_spec(const Json& json, const JsonPath& path) {
  if (!json.is_array()) json_fail(json, path, "a list with one entry per axis");
  LayoutSpec spec;
  for (size_t i = 0; i < json.size(); ++i) spec.push_back(read_axis(json[i], path.index(i)));
  return spec;
}

std::optional<LayoutSpec> read_optional_spec(JsonObject& object, const std::string& key) {
  const auto json = object.take_optional<Json>(key);
  if (!json) return std::nullopt;
  return read_spec(*json, object.path().key(key));
}

bool read_reshard(const Json& json, const JsonPath& path) {
  if (json == "never") return false;
  if (json == "after_forward") return true;
  json_fail(json, path, "\"never\" or \"after_forward\"");
}

bool read_reduce(const Json& json, const JsonPath& path) {
  if (json == "ready") return false;
  if (json == "end") return true;
  json_fail(json, path, "\"ready\" or \"end\"");
}

LayoutRule read_rule(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  LayoutRule rule;
  rule.match = object.take<std::string>("match");
  rule.layout = read_spec(object.take<Json>("layout"), path.key("layout"));
  rule.use = read_optional_spec(object, "use");
  rule.slots = read_optional_spec(object, "slots");
  if (const auto reshard = object.take_optional<Json>("reshard")) {
    rule.reshard_after_forward = read_reshard(*reshard, path.key("reshard"));
  }
  if (const auto reduce = object.take_optional<Json>("reduce")) {
    rule.reduce_at_end = read_reduce(*reduce, path.key("reduce"));
  }
  rule.optional = object.take_or("optional", false);
  object.take_optional<int64_t>("stage");  // read_stage_rule()
  object.finish();
  return rule;
}

/// Reads the stage of a rule, if it has one.
std::optional<StageRule> read_stage_rule(const Json& json, const JsonPath& path) {
  if (!json.is_object() || !json.contains("stage") || json["stage"].is_null()) return std::nullopt;
  JsonObject object(json, path);
  return StageRule{object.take<std::string>("match"), object.take<int64_t>("stage")};
}

std::vector<std::string> read_split(const Json& json, const JsonPath& path) {
  if (json == "auto" || json == "rules") return {json_as<std::string>(json, path)};
  if (json.is_array()) return json_as<std::vector<std::string>>(json, path);
  json_fail(json, path, "\"auto\", \"rules\" or a list of layers");
}

PipelineParallelOptions read_pipeline(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  PipelineParallelOptions pipeline;
  pipeline.stages = object.take_or("stages", pipeline.stages);
  pipeline.microbatches = object.take<int64_t>("microbatches");
  pipeline.schedule = object.take_or("schedule", pipeline.schedule);
  pipeline.chunks = object.take_or("chunks", pipeline.chunks);
  if (const auto split = object.take_optional<Json>("split")) {
    pipeline.split = read_split(*split, path.key("split"));
  }
  object.finish();
  return pipeline;
}

FullyShard read_fully_shard(const Json& json, const JsonPath& path) {
  if (!json.is_object()) return {read_axis(json, path)};
  JsonObject object(json, path);
  FullyShard shard{read_axis(object.take<Json>("over"), path.key("over"))};
  if (const auto reshard = object.take_optional<Json>("reshard")) {
    shard.reshard_after_forward = read_reshard(*reshard, path.key("reshard"));
  }
  if (const auto reduce = object.take_optional<Json>("reduce")) {
    shard.reduce_at_end = read_reduce(*reduce, path.key("reduce"));
  }
  object.finish();
  return shard;
}

std::vector<std::string> read_saved(const Json& json, const JsonPath& path) {
  if (json == "nothing") return {};
  if (json == "matmuls") return {"matmuls"};
  if (json.is_array()) return json_as<std::vector<std::string>>(json, path);
  json_fail(json, path, "\"nothing\", \"matmuls\" or a list of names of operations");
}

RematRule read_remat_rule(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  RematRule rule;
  rule.match = object.take<std::string>("match");
  if (const auto save = object.take_optional<Json>("save")) {
    rule.policy.save = read_saved(*save, path.key("save"));
  }
  rule.policy.collectives = object.take_or("collectives", false);
  object.finish();
  return rule;
}

MeshDims read_mesh(const Json& json, const JsonPath& path) {
  if (!json.is_object()) json_fail(json, path, "an object of dimension names and sizes");
  MeshDims dims;
  for (const auto& [name, size] : json.items()) {
    dims.emplace_back(name, json_as<int64_t>(size, path.key(name)));
  }
  return dims;
}

std::map<std::string, LayoutSpec> read_data(const Json& json, const JsonPath& path) {
  if (!json.is_object()) json_fail(json, path, "an object of names of data and their layouts");
  std::map<std::string, LayoutSpec> data;
  for (const auto& [name, spec] : json.items()) data[name] = read_spec(spec, path.key(name));
  return data;
}

OnMultiple read_on_multiple(const Json& json, const JsonPath& path) {
  if (json == "error") return OnMultiple::error;
  if (json == "first") return OnMultiple::first;
  json_fail(json, path, "\"error\" or \"first\"");
}

Json axis_json(const AxisSpec& axis) {
  if (axis.dims().empty()) return nullptr;
  if (axis.dims().size() == 1) return axis.dims()[0];
  return axis.dims();
}

Json spec_json(const LayoutSpec& spec) {
  Json json = Json::array();
  for (const AxisSpec& axis : spec) json.push_back(axis_json(axis));
  return json;
}

Json rule_json(const LayoutRule& rule) {
  Json json = Json::object();
  json["match"] = rule.match;
  json["layout"] = spec_json(rule.layout);
  if (rule.use) json["use"] = spec_json(*rule.use);
  if (rule.slots) json["slots"] = spec_json(*rule.slots);
  if (rule.reshard_after_forward) json["reshard"] = "after_forward";
  if (rule.reduce_at_end) json["reduce"] = "end";
  if (rule.optional) json["optional"] = true;
  return json;
}

Json fully_shard_json(const FullyShard& shard) {
  Json json = {{"over", axis_json(shard.over)}};
  if (!shard.reshard_after_forward) json["reshard"] = "never";
  if (shard.reduce_at_end) json["reduce"] = "end";
  return json;
}

Json pipeline_json(const PipelineParallelOptions& pipeline) {
  Json json = {{"stages", pipeline.stages},
               {"microbatches", pipeline.microbatches},
               {"schedule", pipeline.schedule}};
  if (pipeline.chunks != 0) json["chunks"] = pipeline.chunks;
  const bool word =
      pipeline.split.size() == 1 && (pipeline.split[0] == "auto" || pipeline.split[0] == "rules");
  json["split"] = word ? Json(pipeline.split[0]) : Json(pipeline.split);
  return json;
}

Json remat_rule_json(const RematRule& rule) {
  Json json = {{"match", rule.match}};
  if (!rule.policy.save.empty()) json["save"] = rule.policy.save;
  if (rule.policy.collectives) json["collectives"] = true;
  return json;
}

}  // namespace

LayoutFile detail::layout_file_from_json(const Json& json, const std::string& source) {
  const JsonPath path(source);
  JsonObject object(json, path);
  LayoutFile file;
  if (const auto mesh = object.take_optional<Json>("mesh")) {
    file.mesh = read_mesh(*mesh, path.key("mesh"));
  }
  if (const auto data = object.take_optional<Json>("data")) {
    file.data = read_data(*data, path.key("data"));
  }
  if (const auto pipeline = object.take_optional<Json>("pipeline")) {
    file.pipeline = read_pipeline(*pipeline, path.key("pipeline"));
  }
  const auto rules = object.take_or<std::vector<Json>>("layouts", {});
  for (size_t i = 0; i < rules.size(); ++i) {
    const JsonPath rule_path = path.key("layouts").index(i);
    const auto stage = read_stage_rule(rules[i], rule_path);
    if (stage && !file.pipeline) {
      json_fail(rules[i]["stage"], rule_path.key("stage"), "no stage without \"pipeline\"");
    }
    if (stage) file.pipeline->rules.push_back(*stage);
    // A rule of a path and a stage has no layout.
    const bool only_stage = stage && !rules[i].contains("layout") && rules[i].size() == 2;
    if (!only_stage) file.rules.push_back(read_rule(rules[i], rule_path));
  }
  if (const auto shard = object.take_optional<Json>("fully_shard")) {
    file.fully_shard = read_fully_shard(*shard, path.key("fully_shard"));
  }
  if (const auto memory = object.take_optional<Json>("memory")) {
    JsonObject places(*memory, path.key("memory"));
    file.memory.slots = places.take_or<std::string>("slots", "");
    places.finish();
    if (!file.memory.valid()) {
      json_fail(file.memory.slots, path.key("memory").key("slots"), "\"host\" or \"disk:FOLDER\"");
    }
  }
  const auto remat = object.take_or<std::vector<Json>>("remat", {});
  for (size_t i = 0; i < remat.size(); ++i) {
    file.remat.push_back(read_remat_rule(remat[i], path.key("remat").index(i)));
  }
  file.world_size_invariant = object.take_or("world_size_invariant", false);
  if (const auto on_multiple = object.take_optional<Json>("on_multiple")) {
    file.on_multiple = read_on_multiple(*on_multiple, path.key("on_multiple"));
  }
  object.finish();
  return file;
}

LayoutFile read_layout_file(const std::string& path) {
  return layout_file_from_json(read_json_file(path), path);
}

LayoutMap make_layout_map(const LayoutFile& file, const Mesh& mesh) {
  LayoutMap map(mesh, {.on_multiple = file.on_multiple});
  for (const LayoutRule& rule : file.rules) map.add(rule);
  if (file.fully_shard) map.fully_shard(*file.fully_shard);
  map.set_memory(file.memory);
  if (file.pipeline) map.set_pipeline(*file.pipeline);
  for (const RematRule& rule : file.remat) map.rematerialize(rule);
  map.set_world_size_invariant(file.world_size_invariant);
  for (const auto& [name, spec] : file.data) map.set_data(name, spec);
  return map;
}

Json to_json(const LayoutMap& map) {
  Json json = {{"mesh", Json::object()}, {"data", Json::object()}, {"layouts", Json::array()}};
  for (const auto& [name, size] : map.mesh().dims()) json["mesh"][name] = size;
  for (const auto& [name, spec] : map.data()) json["data"][name] = spec_json(spec);
  for (const LayoutRule& rule : map.rules()) json["layouts"].push_back(rule_json(rule));
  if (map.fully_shard()) json["fully_shard"] = fully_shard_json(*map.fully_shard());
  if (!map.memory().slots.empty()) json["memory"]["slots"] = map.memory().slots;
  if (map.pipeline()) {
    json["pipeline"] = pipeline_json(*map.pipeline());
    for (const StageRule& rule : map.pipeline()->rules) {
      json["layouts"].push_back({{"match", rule.match}, {"stage", rule.stage}});
    }
  }
  for (const RematRule& rule : map.remat_rules()) json["remat"].push_back(remat_rule_json(rule));
  if (map.world_size_invariant()) json["world_size_invariant"] = true;
  json["on_multiple"] = map.options().on_multiple == OnMultiple::first ? "first" : "error";
  return json;
}

LayoutMap layout_map_from_json(const Json& json, const Mesh& mesh, const std::string& source) {
  return make_layout_map(layout_file_from_json(json, source), mesh);
}

}  // namespace tessera
