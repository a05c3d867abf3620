# Finds gRPC, which the tasks of a parameter server job use, and builds tessera_rpc_messages from
# parameter_server.proto: generated code, compiled without warnings.
pkg_check_modules(GRPC QUIET grpc++ protobuf)
find_program(TESSERA_PROTOC protoc)
find_program(TESSERA_GRPC_PLUGIN grpc_cpp_plugin)
mark_as_advanced(TESSERA_PROTOC TESSERA_GRPC_PLUGIN)
if(NOT GRPC_FOUND OR NOT TESSERA_PROTOC OR NOT TESSERA_GRPC_PLUGIN)
  set(TESSERA_GRPC OFF)
  message(STATUS
    "Built without parameter servers: they need libgrpc++-dev and protobuf-compiler-grpc")
  return()
endif()

set(proto ${CMAKE_SOURCE_DIR}/framework/parameter_server/parameter_server.proto)
set(folder ${CMAKE_BINARY_DIR}/generated/rpc)
set(generated ${folder}/parameter_server.pb.cc ${folder}/parameter_server.grpc.pb.cc)
file(MAKE_DIRECTORY ${folder})
# libtorch's headers include those of an older protobuf: this folder comes before them.
pkg_get_variable(protobuf_headers protobuf includedir)
file(CREATE_LINK ${protobuf_headers}/google ${CMAKE_BINARY_DIR}/generated/google SYMBOLIC)
add_custom_command(
  OUTPUT ${generated} ${folder}/parameter_server.pb.h ${folder}/parameter_server.grpc.pb.h
  COMMAND ${TESSERA_PROTOC} --cpp_out=${folder} --grpc_out=${folder}
    --plugin=protoc-gen-grpc=${TESSERA_GRPC_PLUGIN} -I ${CMAKE_SOURCE_DIR}/framework/parameter_server
    ${proto}
  DEPENDS ${proto} VERBATIM)
add_library(tessera_rpc_messages OBJECT ${generated})
target_include_directories(tessera_rpc_messages SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
target_compile_options(tessera_rpc_messages PRIVATE -w)
# pkg-config names ninety libraries; link only those that are used.
set(TESSERA_GRPC_LINK
  -Wl,--push-state,--as-needed,-lgrpc++,-lgrpc,-lgpr,-lprotobuf,-labsl_synchronization,--pop-state)
