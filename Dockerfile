# The command in an image of its own: docker build -t dibs .
#
# To add a job: FROM dibs, COPY it, and CMD ["dibs", "run", "nightly", "--", "nightly"].
FROM debian:bookworm-slim AS build
WORKDIR /src
# A change of the code does not install the packages again.
COPY tools/install-packages.sh tools/packages.txt tools/step.sh tools/
RUN tools/install-packages.sh build
COPY . .
RUN make && make install DESTDIR=/out PREFIX=/usr && strip /out/usr/bin/dibs

FROM debian:bookworm-slim
# Libraries of the stores and of configuration files; dibs loads each when it needs it.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libhiredis0.14 libpq5 libsqlite3-0 libssl3 libyaml-0-2 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/dibs dibs
COPY --from=build /out/usr/bin/dibs /usr/bin/dibs
USER 10001
WORKDIR /var/lib/dibs
CMD ["dibs", "help"]
