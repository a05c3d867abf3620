# Debian 12 with the installed package and the applications mnist and imdb:
#   docker build -t tessera .
#   docker run --rm tessera mnist --epochs 1
# For GPUs, with NVIDIA's container toolkit:
#   docker build -t tessera-gpu --build-arg gpus=1 .
#   docker run --rm --gpus all tessera-gpu mnist --epochs 1
# A container that serves is healthy as long as its server answers:
#   docker run -v $PWD/exports:/exports -p 8501:8501 tessera imdb serve /exports --host 0.0.0.0 --port 8501
# `./run night image` tests that what the last stage installs is enough.

# For an image that can be built again bit by bit, name the base by its digest:
#   --build-arg base=debian:12-slim@sha256:...
ARG base=debian:12-slim
FROM $base AS build
ARG gpus=0
WORKDIR /opt/tessera
COPY . .
RUN TESSERA_GPUS=$gpus ./run build
RUN cmake --install build/release --prefix /usr/local --strip

# To compile programs against the package, also install what find_package(tessera) needs:
#   apt-get install cmake g++ ninja-build nlohmann-json3-dev libre2-dev pkg-config zlib1g-dev
FROM $base
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libarchive13 libcurl4 libgloo0 libgomp1 \
      libgrpc++1.51 libhdf5-103-1 libjpeg62-turbo libonig5 libpng16-16 libprotobuf32 libre2-9 libseccomp2 \
      libsentencepiece0 libssl3 libutf8proc2 libwebp7 zlib1g \
 && rm -rf /var/lib/apt/lists/*
# The library finds libtorch by its path at build time.
COPY --from=build /opt/tessera/build/deps /opt/tessera/build/deps
COPY --from=build /usr/local /usr/local
RUN ldconfig && useradd --create-home tessera
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
CMD ["mnist"]
