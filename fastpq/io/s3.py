"""Multipart uploads to S3, through s3fs's client."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastpq.io.location import refused_options
from fastpq.io.object_store import ObjectStore, Upload
from fastpq.io.sink import Conditions

TOKEN = "fastpq-upload"         # key in an object's metadata


class S3Store(ObjectStore):
    """Requests to S3 (``S3FileSystem.call_s3``)."""

    def __init__(self, filesystem: Any) -> None:
        super().__init__(filesystem)
        self.has_equal_parts = bool(getattr(filesystem, "fixed_upload_size", False))

    def begin(self, path: str, token: str) -> str:
        return str(self._call(path, "create_multipart_upload", **self._place(path), Metadata={TOKEN: token})["UploadId"])

    def put_part(self, path: str, upload_id: str, number: int, body: bytes) -> str:
        place = {**self._place(path), "UploadId": upload_id}
        return str(self._call(path, "upload_part", **place, PartNumber=number, Body=body)["ETag"])

    def abort(self, path: str, upload_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):        # the upload was completed or aborted before
            self._call(path, "abort_multipart_upload", **self._place(path), UploadId=upload_id)

    def is_unfinished(self, upload: Upload) -> bool:
        try:
            self._call(upload.path, "list_parts", **self._place(upload.path), UploadId=upload.upload_id, MaxParts=1)
        except FileNotFoundError:
            return False
        return True

    def unfinished(self, path: str) -> list[tuple[str, str, float]]:
        bucket, key, _ = self.filesystem.split_path(path)
        uploads: list[tuple[str, str, float]] = []
        now = datetime.now(UTC)
        markers: dict[str, str] = {}
        while True:
            answer = self._call(path, "list_multipart_uploads", Bucket=bucket, Prefix=key, **markers)
            uploads.extend(
                (f"{bucket}/{one['Key']}", one["UploadId"], (now - one["Initiated"]).total_seconds())
                for one in answer.get("Uploads", ())
                if one["Key"] == key or not key or one["Key"].startswith(f"{key.rstrip('/')}/")
            )
            if not answer.get("IsTruncated"):
                return sorted(uploads)
            markers = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    def version(self, about: Mapping[str, Any]) -> str:
        return str(about["ETag"])

    def identity(self, about: Mapping[str, Any]) -> str:
        """Return version and time, because objects with equal bytes have the same ETag."""
        return f"{self.version(about)} {self.changed(about)}"

    def changed(self, about: Mapping[str, Any]) -> datetime | None:
        return about.get("LastModified")

    def _complete(self, upload: Upload, conditions: Conditions) -> None:
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(upload.parts, 1)]
        options = {**self._place(upload.path), "UploadId": upload.upload_id, "MultipartUpload": {"Parts": parts}}
        self._call(upload.path, "complete_multipart_upload", **options, **_headers(conditions))

    def _put(self, path: str, body: bytes, token: str, conditions: Conditions) -> None:
        options = {**self._place(path), "Body": body, "Metadata": {TOKEN: token}}
        self._call(path, "put_object", **options, **_headers(conditions))

    def _token(self, path: str) -> str | None:
        try:
            answer = self._call(path, "head_object", **self._place(path))
        except OSError:
            return None
        token: str | None = answer.get("Metadata", {}).get(TOKEN)
        return token

    def _is_refusal(self, error: OSError) -> bool:
        answer = getattr(error.__cause__, "response", None) or {}       # None if the connection failed
        return bool(answer.get("ResponseMetadata", {}).get("HTTPStatusCode") == 412)

    def _place(self, path: str) -> dict[str, str]:
        bucket, key = self.place(path)
        return {"Bucket": bucket, "Key": key}

    def _call(self, path: str, method: str, **options: Any) -> Any:
        """Return the answer to a request."""
        with self._failures(path, method):
            return self.filesystem.call_s3(method, **options)

    def _failure(self, error: Exception, method: str, path: str) -> Exception:
        if isinstance(error, TypeError | AttributeError):
            return refused_options(path, self.filesystem.storage_options, error)
        return super()._failure(error, method, path)


def _headers(conditions: Conditions) -> dict[str, str]:
    headers = {"IfNoneMatch": conditions.if_none_match, "IfMatch": conditions.if_match}
    return {name: value for name, value in headers.items() if value is not None}
