# A Millstream node. The cluster of docker-compose.yml is three of these.
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --prefix=/install --constraint constraints.txt .

FROM python:3.13-slim
COPY --from=build /install /usr/local
RUN useradd --system --uid 1000 millstream && mkdir /data && chown millstream /data
USER millstream
VOLUME /data
# Settings come as KAFKA_* variables; CLUSTER_ID is common to all nodes of a cluster.
ENV KAFKA_LOG_DIRS=/data
EXPOSE 9092
ENTRYPOINT ["millstream", "broker"]
