# Debian 12 with Tessera's packages, for CPUs:
#   docker build -f deploy/docker/cpu.Dockerfile -t tessera .
#   docker run --rm tessera tessera-mnist --epochs 1
# A container that serves is healthy as long as its server answers:
#   docker run -v $PWD/exports:/exports -p 8501:8501 tessera \
#     tessera-imdb serve /exports --host 0.0.0.0 --port 8501
# The test chroot_nightly installs the same packages in a folder and tries the programs.

# For an image that can be built again bit by bit, name the base by its digest, and the time of the commit:
#   --build-arg base=debian:12-slim@sha256:... --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
ARG base=debian:12-slim
FROM $base AS build
ARG SOURCE_DATE_EPOCH=0
WORKDIR /opt/tessera
COPY . .
RUN TESSERA_GPUS=0 SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH ./run package

FROM $base
COPY deploy/docker/cpu_packages.txt /opt/packages/packages.txt
COPY --from=build /opt/tessera/build/packages/*.deb /opt/packages/
# Of our packages only those that the list names are installed.
RUN apt-get update \
 && cd /opt/packages \
 && for name in $(grep -v '^#' packages.txt); do \
      ls ./${name}_*.deb 2>/dev/null || echo $name; done >names.txt \
 && apt-get install -y --no-install-recommends $(cat names.txt) \
 && rm -rf /var/lib/apt/lists/* /opt/packages \
 && useradd --create-home tessera
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
