"""The object stores of tests: how a process finds the server of each, and filesystems on it."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastpq.io.location import Remote
from fastpq.io.object_store import store_at
from tests.io.azure_server import connection_string

KINDS = ("s3", "azure", "google")
# gcsfs otherwise asks by gRPC, which no server of tests speaks, for the kind of a bucket; read when gcsfs is imported
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")


@cache
def parse_models_once() -> None:
    """Let botocore list and parse its descriptions of services once in a process, not once for each session.

    Each filesystem on S3 has a session of its own, and spends two thirds of the processor time of its start on the descriptions.
    """
    import botocore.session

    botocore.session.create_loader = cache(botocore.session.create_loader)


@contextmanager
def moto_server(recording: Callable[[Any], Any] = lambda app: app) -> Iterator[str]:
    """The URL of moto's server of AWS KMS and S3, without a log; it lists its modules once, and not twice for each request.

    Args:
        recording: makes a WSGI application of moto's, to see the requests.
    """
    from moto import backends
    from moto.server import ThreadedMotoServer

    modules = list(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: modules
    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    assert server._server is not None
    server._server.app = recording(server._server.app)
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@dataclass(frozen=True)
class Store:
    """A kind of store, and its server.

    Attributes:
        kind: one of KINDS.
        url: of the server.
    """

    kind: str
    url: str

    @property
    def scheme(self) -> str:
        """The protocol of URLs, as the filesystem gives it."""
        return {"s3": "s3", "azure": "abfs", "google": "gs"}[self.kind]

    def filesystem(self, url: str | None = None, **options: Any) -> Any:
        """A filesystem that sends each request once, to the server or to another one."""
        url = url or self.url
        made: Any
        if self.kind == "s3":
            import s3fs

            parse_models_once()
            client = {"endpoint_url": url, "verify": False}     # no certificates, which each client would load
            made = s3fs.S3FileSystem(
                key="test", secret="test", client_kwargs=client, config_kwargs={"retries": {"max_attempts": 1}},
                skip_instance_cache=True, **options,
            )
            made.retries = 1
        elif self.kind == "azure":
            import adlfs

            made = adlfs.AzureBlobFileSystem(connection_string=connection_string(url), skip_instance_cache=True, **options)
            for policy in made.service_client._pipeline._impl_policies:
                if hasattr(policy, "total_retries"):
                    policy.total_retries = 0
        else:
            import gcsfs

            made = gcsfs.GCSFileSystem(endpoint_url=url, token="anon", project="test", skip_instance_cache=True, **options)
            made._request = gcsfs.core.GCSFileSystem._request.__wrapped__.__get__(made)
        return made

    def environment(self, url: str | None = None) -> dict[str, str]:
        """Variables by which a process finds the server, or another one."""
        url = url or self.url
        if self.kind == "s3":
            return {
                "AWS_ENDPOINT_URL_S3": url, "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            }
        if self.kind == "azure":
            return {"AZURE_STORAGE_CONNECTION_STRING": connection_string(url)}
        return {
            "STORAGE_EMULATOR_HOST": url, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false", "GOOGLE_CLOUD_PROJECT": "test",
            "NO_GCE_CHECK": "true",
        }

    def new_bucket(self, *filesystems: Any) -> str:
        """Make a bucket, and let s3fs ask for its region, as before its first request; returns the name."""
        name = f"bucket-{uuid.uuid4().hex}"
        self.filesystem().mkdir(name)
        if self.kind == "s3":
            for filesystem in filesystems:
                filesystem.call_s3("head_bucket", Bucket=name)
        return name


def begun(place: Remote) -> list[tuple[str, str, float]]:
    """The unfinished uploads below a place, in Azure also those that were given up."""
    return store_at(place.filesystem).unfinished(place.path)


def unfinished(place: Remote) -> list[tuple[str, str, float]]:
    """The unfinished uploads below a place, where they can be aborted; Azure keeps the blocks of given up uploads for a week."""
    store = store_at(place.filesystem)
    return store.unfinished(place.path) if store.aborts else []
