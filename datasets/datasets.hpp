#pragma once

#include <tessera/datasets/generator_dataset.hpp>
#include <tessera/datasets/imdb.hpp>
#include <tessera/datasets/mnist.hpp>
#include <tessera/framework/nn/tensor_dataset.hpp>
