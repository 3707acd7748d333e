"""Logs in object storage: one object for each day, read through moto's server of S3 as if it were S3."""

import logging

import fsspec
from make_data import log_lines
from moto.server import ThreadedMotoServer

import fastpq

logging.getLogger("werkzeug").setLevel("ERROR")
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
options = {"key": "any", "secret": "any", "endpoint_url": f"http://{host}:{port}"}
try:
    fsspec.filesystem("s3", **options).mkdir("logs")
    for day in (1, 2, 3):
        where = f"s3://logs/app/day={day}/log.parquet"
        fastpq.write_table(
            log_lines(day), where, compression="zstd", bloom_filter={"request": True}, storage_options=options
        )

    dataset = fastpq.ParquetDataset("s3://logs/app/", storage_options=options)
    errors = dataset.count([("level", "=", "ERROR")])
    print(f"{errors} errors in {dataset.num_rows} lines of {len(dataset.files)} objects")

    request = log_lines(2)["request"][12_345]
    lines = dataset.read(["day", "message"], filters=[("day", "=", 2), ("request", "=", request)])
    print(lines.to_pylist())

    # The folder of a day is left out by its name: of three objects, one is opened.
    explanation = dataset.explain([("day", "=", 2), ("request", "=", request)])
    print(f"{len(explanation.files)} of {len(dataset.files)} objects are opened")
finally:
    server.stop()
