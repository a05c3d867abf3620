#pragma once

#include <tessera/datasets/mnist.hpp>
#include <tessera/datasets/tensor_dataset.hpp>
