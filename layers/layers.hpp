#pragma once

#include <tessera/layers/activation.hpp>
#include <tessera/layers/batch_normalization.hpp>
#include <tessera/layers/concatenate.hpp>
#include <tessera/layers/dense.hpp>
#include <tessera/layers/dot.hpp>
#include <tessera/layers/dropout.hpp>
#include <tessera/layers/flatten.hpp>
#include <tessera/layers/merge.hpp>
#include <tessera/layers/normalization.hpp>
#include <tessera/layers/permute.hpp>
#include <tessera/layers/repeat_vector.hpp>
#include <tessera/layers/rescaling.hpp>
#include <tessera/layers/reshape.hpp>
#include <tessera/layers/string_lookup.hpp>
#include <tessera/layers/text_vectorization.hpp>
