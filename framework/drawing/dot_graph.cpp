#include <tessera/framework/drawing/dot_graph.hpp>

#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/drawing/svg.hpp>

namespace tessera::detail {
namespace {

/// Default attributes of the picture. A viewer uses the first of the fonts that it has.
constexpr const char* head =
    R"(  graph [fontname="Helvetica,Arial,sans-serif" fontsize=15 fontcolor="#1f2328" labelloc=t
         bgcolor=white pad=0.25 nodesep=0.35 ranksep=0.35]
  node [fontname="Helvetica,Arial,sans-serif" fontsize=11 fontcolor="#1f2328" shape=plain]
  edge [color="#59636e" arrowsize=0.7]
)";

/// Escapes a text for an HTML label. Graphviz expands escapes such as \N there too, so each
/// backslash is doubled.
std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : xml_text(text)) out += c == '\\' ? "\\\\" : std::string(1, c);
  return out;
}

/// Returns the text in bold; empty for an empty text, since Graphviz rejects empty tags.
std::string bold(const std::string& text) {
  return text.empty() ? "" : str("<b>", html_text(text), "</b>");
}

std::string muted(const std::string& text) {
  if (text.empty()) return "";
  return str("<font color=\"", Svg::muted, "\">", html_text(text), "</font>");
}

std::string heading(const std::string& name, const std::string& type) {
  return bold(name) + "  " + muted(type);
}

void write_node(std::string& out, const DotNode& node, const std::string& id) {
  const bool is_input = node.type == "InputLayer" || node.type == "Input";
  const char* frame = is_input ? "#5d9a6c" : "#6d94c4";
  const char* ground = is_input ? "#d7eadb" : "#dbe7f5";
  out += str(id, " [label=<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\"",
             " cellpadding=\"4\" bgcolor=\"white\" color=\"", frame, "\">\n",
             "<tr><td colspan=\"2\" align=\"left\" bgcolor=\"", ground, "\">",
             heading(node.name, node.type), "</td></tr>\n");
  for (const DotNode::Row& row : node.rows) {
    out += str("<tr><td align=\"left\">", muted(row.name), "</td><td align=\"left\">",
               html_text(row.value), "</td></tr>\n");
  }
  out += "</table>>]\n";
}

/// Writes the nodes of a cluster, then its inner clusters.
void write_cluster(std::string& out, const DotGraph& graph, int cluster, int depth) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].cluster == cluster) write_node(out, graph.nodes[i], str("n", i));
  }
  for (size_t i = 0; i < graph.clusters.size(); ++i) {
    const DotCluster& inner = graph.clusters[i];
    if (inner.parent != cluster) continue;
    out += str("subgraph cluster_", i, " {\n  graph [label=<", heading(inner.name, inner.type),
               "> fontsize=11 labeljust=l margin=14 style=\"rounded,filled\" color=\"", Svg::frame,
               "\" fillcolor=\"", depth % 2 == 0 ? "#f5f7fa" : "#ebeff4", "\"]\n");
    write_cluster(out, graph, static_cast<int>(i), depth + 1);
    out += "}\n";
  }
}

}  // namespace

std::string DotGraph::text() const {
  std::string out = str("digraph {\n", head);
  if (!title.empty()) out += str("  label=<", bold(title), ">\n");
  write_cluster(out, *this, -1, 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<int> written;
    for (const int input : nodes[i].inputs) {
      if (written.insert(input).second) out += str("n", input, " -> n", i, "\n");
    }
  }
  return out + "}\n";
}

}  // namespace tessera::detail
