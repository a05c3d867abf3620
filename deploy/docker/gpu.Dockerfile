# Debian 12 with Tessera's packages, for GPUs; needs NVIDIA's container toolkit:
#   docker build -f deploy/docker/gpu.Dockerfile -t tessera-gpu .
#   docker run --rm --gpus all tessera-gpu tessera-mnist --epochs 1
# No GPU is needed to build it.
# The test chroot_nightly installs the same packages in a folder and tries the programs.

# For an image that can be built again bit by bit, name the base by its digest, and the time of the commit:
#   --build-arg base=debian:12-slim@sha256:... --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
ARG base=debian:12-slim
FROM $base AS build
ARG SOURCE_DATE_EPOCH=0
WORKDIR /opt/tessera
COPY . .
RUN TESSERA_GPUS=1 SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH ./run package

FROM $base
COPY deploy/docker/gpu_packages.txt /opt/packages/packages.txt
COPY --from=build /opt/tessera/build/packages/*.deb /opt/packages/
# Of our packages only those that the list names are installed.
RUN apt-get update \
 && cd /opt/packages \
 && for name in $(grep -v '^#' packages.txt); do \
      ls ./${name}_*.deb 2>/dev/null || echo $name; done >names.txt \
 && apt-get install -y --no-install-recommends $(cat names.txt) \
 && rm -rf /var/lib/apt/lists/* /opt/packages \
 && useradd --create-home tessera
# libtorch_cuda and what it is linked with, in the folders of the wheels, where it looks for them.
COPY --from=build /opt/tessera/build/deps/torch-*/nvidia /usr/lib/tessera/nvidia
COPY --from=build /opt/tessera/build/deps/torch-*/torch/lib/libtorch_cuda*.so \
  /opt/tessera/build/deps/torch-*/torch/lib/libtorch_nvshmem.so \
  /opt/tessera/build/deps/torch-*/torch/lib/libcaffe2_nvrtc.so /usr/lib/tessera/torch/lib/
USER tessera
WORKDIR /home/tessera
# Asks the server whose port the container's command names, if it names one; over TLS, only connects.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["bash", "-c", "\
  words=$(tr '\\0' '\\n' </proc/1/cmdline); \
  port=$(sed -n '/^--port$/{n;p};s/^--port=//p' <<<\"$words\"); \
  [[ -n $port ]] || exit 0; \
  exec 3<>/dev/tcp/127.0.0.1/$port || exit 1; \
  ! grep -q '^--certificate' <<<\"$words\" || exit 0; \
  printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; \
  head -n 1 <&3 | grep -q ' 200'"]
CMD ["tessera-mnist"]
