"""Key material and key metadata of type PKMT1: the JSON format of parquet-java and Arrow for wrapped keys.

A file stores key metadata for the footer key and for each column key (Encryption.md, 3): the key material itself, or a
reference to an entry of a material file. Neither is authenticated: all members are checked before use.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from fastpq.errors import FormatError, LimitError, UnsupportedError

MATERIAL_TYPE = "PKMT1"
# Names of entries in a material file, as in parquet-java and Arrow.
FOOTER_REFERENCE = "footerKey"
COLUMN_REFERENCE = "columnKey{}"

LARGEST_MATERIAL = 1 << 16      # bytes; wrapped keys of every key service are far smaller
LARGEST_MATERIAL_FILE = 1 << 26     # bytes


@dataclass(frozen=True)
class KeyMaterial:
    """A wrapped data key.

    Attributes:
        is_footer_key: whether this is the data key of the footer.
        kms_instance_id: instance of the key service; None if not stored: column keys follow the footer key.
        kms_instance_url: URL of the instance; as untrusted as the file.
        master_key_id: identifier of the master key in the service.
        wrapped_dek: the data key (DEK): wrapped by the service, or base64 of secret.seal_key's result with the KEK.
        kek_id: identifier of the KEK that wraps the data key, and AAD of the wrapping; None for wrapping by the master key.
        wrapped_kek: the KEK as wrapped by the service, or None.
    """

    is_footer_key: bool
    kms_instance_id: str | None
    kms_instance_url: str | None
    master_key_id: str
    wrapped_dek: str
    kek_id: bytes | None = None
    wrapped_kek: str | None = None

    def serialize(self, *, internal: bool) -> str:
        """The JSON text of the material, members in Arrow's order.

        Args:
            internal: whether the text is for a file's key metadata; else for a material file.

        Raises:
            LimitError: the service's wrapped keys are too long for readers.
        """
        members: dict[str, Any] = {"keyMaterialType": MATERIAL_TYPE}
        if internal:
            members["internalStorage"] = True
        members["isFooterKey"] = self.is_footer_key
        if self.is_footer_key:
            members["kmsInstanceID"] = self.kms_instance_id
            members["kmsInstanceURL"] = self.kms_instance_url
        members["masterKeyID"] = self.master_key_id
        members["wrappedDEK"] = self.wrapped_dek
        members["doubleWrapping"] = self.kek_id is not None
        if self.kek_id is not None:
            members["keyEncryptionKeyID"] = base64.b64encode(self.kek_id).decode()
            members["wrappedKEK"] = self.wrapped_kek
        text = compact(members)
        _check_size(len(text.encode()), LARGEST_MATERIAL, "key material")
        return text


def parse_key_metadata(key_metadata: bytes) -> KeyMaterial | str:
    """Parse key metadata: the key material itself, or a reference to an entry of the material file.

    Raises:
        FormatError: not PKMT1.
        UnsupportedError: material of another type.
        LimitError: over 64 KiB.
    """
    members = _parse(key_metadata, "key metadata")
    if _boolean(members, "internalStorage"):
        return _material(members)
    return _text(members, "keyReference")


def parse_key_material(text: str) -> KeyMaterial:
    """Parse an entry of a material file; raises as parse_key_metadata."""
    return _material(_parse(text.encode(), "key material"))


def serialize_reference(reference: str) -> bytes:
    """Key metadata with a reference to an entry of the material file."""
    return compact({"keyMaterialType": MATERIAL_TYPE, "internalStorage": False, "keyReference": reference}).encode()


def parse_material_file(data: bytes) -> dict[str, str]:
    """The entries of a material file by reference, each as JSON text.

    Raises:
        FormatError: not a JSON object of strings.
        LimitError: over 64 MiB.
    """
    members = parse_object(data, LARGEST_MATERIAL_FILE, "key material file")
    for reference, text in members.items():
        if not isinstance(text, str):
            _refuse(f"the entry {shown(reference)} is no string")
    return members


def compact(members: dict[str, Any]) -> str:
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False)


def parse_object(data: bytes, limit: int, what: str) -> dict[str, Any]:
    """Parse a JSON object; refuses repeated names, since parsers differ in the value they keep.

    Args:
        data: UTF-8.
        limit: most bytes of data.
        what: name of the data in messages.

    Raises:
        FormatError: no JSON object, or a name twice in one object.
        LimitError: data are longer than limit.
    """
    _check_size(len(data), limit, what)
    try:
        members = json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
        json.dumps(members, ensure_ascii=False).encode()     # an escaped half of a surrogate pair is no text
    except FormatError:
        raise
    except (ValueError, RecursionError):
        raise FormatError(f"{what} that is not JSON in UTF-8") from None
    if not isinstance(members, dict):
        raise FormatError(f"{what} that is not a JSON object")
    return members


def decode_base64(text: str, what: str) -> bytes:
    """The bytes of standard, padded base64.

    Raises:
        FormatError: anything else.
    """
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = None
    if decoded is None or base64.b64encode(decoded).decode() != text:
        raise FormatError(f"{what} is not base64")
    return decoded


def _parse(data: bytes, what: str) -> dict[str, Any]:
    members = parse_object(data, LARGEST_MATERIAL, what)
    kind = _text(members, "keyMaterialType")
    if kind != MATERIAL_TYPE:
        raise UnsupportedError(f"key material of type {shown(kind)}: only {MATERIAL_TYPE} is known")
    return members


def _material(members: dict[str, Any]) -> KeyMaterial:
    is_footer_key = _boolean(members, "isFooterKey")
    double_wrapped = _boolean(members, "doubleWrapping")
    return KeyMaterial(
        is_footer_key=is_footer_key,
        kms_instance_id=_optional_text(members, "kmsInstanceID") if is_footer_key else None,
        kms_instance_url=_optional_text(members, "kmsInstanceURL") if is_footer_key else None,
        master_key_id=_text(members, "masterKeyID"),
        wrapped_dek=_text(members, "wrappedDEK"),
        kek_id=decode_base64(_text(members, "keyEncryptionKeyID"), "keyEncryptionKeyID") if double_wrapped else None,
        wrapped_kek=_text(members, "wrappedKEK") if double_wrapped else None,
    )


def _boolean(members: dict[str, Any], name: str) -> bool:
    value = members.get(name)
    if not isinstance(value, bool):
        _refuse(f"{name} is {'no boolean' if name in members else 'missing'}")
    return value


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        _refuse(f"{name} is {'no text' if name in members else 'missing'}")
    return value


def _optional_text(members: dict[str, Any], name: str) -> str | None:
    return _text(members, name) if name in members else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("a name is there twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _check_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise LimitError(f"{what} of {size} bytes: it may have {limit}")


def shown(text: str) -> str:
    """Text from a file, shortened for a message."""
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _refuse(problem: str) -> NoReturn:
    raise FormatError(f"malformed key material: {problem}")
