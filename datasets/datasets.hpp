#pragma once

#include <tessera/datasets/generator_dataset.hpp>
#include <tessera/datasets/imdb.hpp>
#include <tessera/datasets/mnist.hpp>
#include <tessera/datasets/tensor_dataset.hpp>
