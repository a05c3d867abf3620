#pragma once

#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera::test {

/// Adds tensor parallelism of load_pretrained()'s models over "model" to a layout map: heads,
/// hidden units and rows of the vocabulary.
inline void shard_language_model(LayoutMap& layouts) {
  layouts[".*(query|key|value)/kernel"] = {unsharded, "model", unsharded};
  layouts[".*attention_output/kernel"] = {"model", unsharded, unsharded};
  layouts[".*(gate|up)/kernel"] = {unsharded, "model"};
  layouts[".*down/kernel"] = {"model", unsharded};
  layouts["words/embeddings"] = {"model", unsharded};
}

}  // namespace tessera::test
