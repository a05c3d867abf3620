#pragma once

#include <tessera/framework/ops/activation.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/ops/ctc.hpp>
#include <tessera/framework/ops/custom_op.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/pool.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/resample.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
