# Debian 12 with the installed package and the applications mnist and imdb:
#   docker build -t tessera .
#   docker run --rm tessera mnist --epochs 1
# For GPUs, with NVIDIA's container toolkit:
#   docker build -t tessera-gpu --build-arg gpus=1 .
#   docker run --rm --gpus all tessera-gpu mnist --epochs 1
FROM debian:12-slim AS build
ARG gpus=0
WORKDIR /opt/tessera
COPY . .
RUN TESSERA_GPUS=$gpus ./run build
RUN cmake --install build/release --prefix /usr/local --strip

# To compile programs against the package, also install what find_package(tessera) needs:
#   apt-get install cmake g++ ninja-build nlohmann-json3-dev libre2-dev pkg-config zlib1g-dev
FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libarchive13 libcurl4 libgloo0 libgomp1 \
      libgrpc++1.51 libjpeg62-turbo libpng16-16 libprotobuf32 libre2-9 libssl3 libwebp7 zlib1g \
 && rm -rf /var/lib/apt/lists/*
# The library finds libtorch by its path at build time.
COPY --from=build /opt/tessera/build/deps /opt/tessera/build/deps
COPY --from=build /usr/local /usr/local
RUN ldconfig && useradd --create-home tessera
USER tessera
WORKDIR /home/tessera
CMD ["mnist"]
