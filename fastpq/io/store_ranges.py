"""Byte range requests over HTTP and to S3, Google's store and Azure, through the clients that fsspec's filesystems have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastpq.errors import RemoteError
from fastpq.io.file_version import FileVersion
from fastpq.io.range_requests import (
    UNENCODED,
    Answer,
    AnswerHead,
    AsyncRanges,
    ConditionFailedError,
    RangeRequest,
    WholeFile,
    take_answer,
)

_PRECONDITION_FAILED = 412
_PIECE = 1 << 20        # bytes read at a time


class HttpRanges(AsyncRanges):
    """Requests to an HTTP server. If-Match demands a strong ETag (RFC 9110, 13.1.1)."""

    async def send(
        self, request: RangeRequest, version: FileVersion | None, condition: str | None, whole: WholeFile
    ) -> Answer:
        options = dict(self.filesystem.kwargs)
        headers = {**(options.pop("headers", None) or {}), "Accept-Encoding": UNENCODED, "Range": request.header}
        if condition is not None:
            headers["If-Match"] = condition
        options |= {"headers": headers, "auto_decompress": False}
        session = await self.filesystem.set_session()
        async with session.get(self.filesystem.encode_url(self.path), **options) as response:
            if response.status == _PRECONDITION_FAILED and condition is not None:
                raise ConditionFailedError
            if response.status == 404:
                raise FileNotFoundError(self.path)
            response.raise_for_status()
            head = AnswerHead(response.status, {name.lower(): value for name, value in response.headers.items()})
            encoding = head.headers.get("content-encoding", UNENCODED).strip().lower()
            if encoding not in (UNENCODED, ""):
                raise RemoteError(f"the server compressed its answer ({encoding!r}) although the request forbids it")
            return await take_answer(request, head, version, response.content.iter_any(), whole)


class S3Ranges(AsyncRanges):
    """Requests to S3 (``S3FileSystem._call_s3``). IfMatch demands the object's ETag."""

    async def send(
        self, request: RangeRequest, version: FileVersion | None, condition: str | None, whole: WholeFile
    ) -> Answer:
        bucket, key, version_id = self.filesystem.split_path(self.path)
        # req_kw has RequestPayer, which only the newest s3fs adds by itself
        options = {**self.filesystem.req_kw, "Bucket": bucket, "Key": key, "Range": request.header}
        if version_id is not None:
            options["VersionId"] = version_id
        if condition is not None:
            options["IfMatch"] = condition
        try:
            answer = await self.filesystem._call_s3("get_object", **options)
        except OSError as error:
            refusal = getattr(error.__cause__, "response", None) or {}      # None if the connection failed
            if refusal.get("ResponseMetadata", {}).get("HTTPStatusCode") == _PRECONDITION_FAILED:
                raise ConditionFailedError from error
            raise
        about, body = answer["ResponseMetadata"], answer["Body"]
        try:
            head = AnswerHead(about["HTTPStatusCode"], {name.lower(): value for name, value in about["HTTPHeaders"].items()})
            return await take_answer(request, head, version, _pieces(body), whole)
        finally:
            body.close()


async def _pieces(body: Any) -> AsyncIterator[bytes]:
    while piece := await body.read(_PIECE):
        yield piece


async def _one_piece(data: bytes) -> AsyncIterator[bytes]:
    yield data


class GoogleRanges(AsyncRanges):
    """Requests to Google's store (``GCSFileSystem._call``). ifGenerationMatch demands the object's generation."""

    def is_usable(self) -> bool:
        """Return whether the bucket is not zonal. Zonal buckets are read through gRPC, which is left to gcsfs."""
        is_zonal = getattr(self.filesystem, "_is_zonal_bucket", None)
        return is_zonal is None or not self.run(is_zonal, self.filesystem.split_path(self.path)[0])

    def condition(self, version: FileVersion) -> str | None:
        return version.tag if version.tag is not None and version.tag.isdecimal() else None

    async def send(
        self, request: RangeRequest, version: FileVersion | None, condition: str | None, whole: WholeFile
    ) -> Answer:
        options = {} if condition is None else {"ifGenerationMatch": condition}
        url = self.filesystem.url(self.path)
        try:
            headers, data = await self.filesystem._call("GET", url, headers={"Range": request.header}, **options)
        except FileExistsError as error:        # gcsfs's error for status 412
            raise ConditionFailedError from error
        lower = {name.lower(): value for name, value in headers.items()}
        head = AnswerHead(206 if "content-range" in lower else 200, lower)
        return await take_answer(request, head, version, _one_piece(data), whole)


class AzureRanges(AsyncRanges):
    """Requests to Azure (``AzureBlobFileSystem.service_client``). match_condition demands the blob's ETag."""

    gives_ends = False

    async def send(
        self, request: RangeRequest, version: FileVersion | None, condition: str | None, whole: WholeFile
    ) -> Answer:
        from azure.core import MatchConditions
        from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

        filesystem = self.filesystem
        container, blob, version_id = filesystem.split_path(self.path)
        answers: list[Any] = []     # several for one range, because Azure's client requests a long range in parts
        options = {"etag": condition, "match_condition": MatchConditions.IfNotModified} if condition is not None else {}
        async with filesystem.service_client.get_blob_client(container=container, blob=blob) as client:
            try:
                stream = await client.download_blob(
                    offset=request.start, length=request.length, version_id=version_id, raw_response_hook=answers.append,
                    max_concurrency=filesystem.max_concurrency, **getattr(filesystem, "_timeout_kwargs", {}), **options,
                )
                data = await stream.readall()
            except ResourceNotFoundError as error:
                raise FileNotFoundError(self.path) from error
            except HttpResponseError as error:
                if error.status_code == _PRECONDITION_FAILED:
                    raise ConditionFailedError from error
                raise
        return await take_answer(request, _joined_head(request, version, answers), version, _one_piece(data), whole)


def _joined_head(request: RangeRequest, version: FileVersion | None, answers: list[Any]) -> AnswerHead:
    """Check the answers for a range's parts, and return one head for all of them.

    Raises:
        RemoteError: an answer has another part than the client requested, or another file version.
    """
    total = "*"
    joined_headers: dict[str, str] = {}
    for answer in answers:
        status, range_header = answer.http_response.status_code, answer.http_request.headers.get("x-ms-range", "")
        headers = {name.lower(): value for name, value in answer.http_response.headers.items()}
        first, _, last = range_header.removeprefix("bytes=").partition("-")
        if status not in (200, 206):        # the client repeats such a request
            continue
        if not (first.isdecimal() and last.isdecimal()):
            raise RemoteError(f"Azure's client asked for {range_header!r}, which is not a range")
        if version is not None:
            version.check_unchanged(FileVersion.from_headers(headers, None))
        _, _, size = AnswerHead(status, headers).place(RangeRequest(int(first), int(last) - int(first) + 1, request.size))
        total = total if size is None else str(size)
        joined_headers = joined_headers or headers
    start = request.start or 0
    place = {"content-range": f"bytes {start}-{start + request.length - 1}/{total}", "content-length": str(request.length)}
    return AnswerHead(206, {**joined_headers, **place})
