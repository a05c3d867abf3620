#pragma once

#include <tessera/datasets/arrays/arrays.hpp>
#include <tessera/datasets/cifar.hpp>
#include <tessera/datasets/generator_dataset.hpp>
#include <tessera/datasets/image_folder.hpp>
#include <tessera/datasets/imdb.hpp>
#include <tessera/datasets/json_lines.hpp>
#include <tessera/datasets/load_safetensors.hpp>
#include <tessera/datasets/mnist.hpp>
#include <tessera/datasets/pack_documents.hpp>
#include <tessera/datasets/pipeline/data_pipeline.hpp>
#include <tessera/datasets/read_array.hpp>
#include <tessera/datasets/read_csv.hpp>
#include <tessera/datasets/text_folder.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>
