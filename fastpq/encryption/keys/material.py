"""Key material and key metadata with the type PKMT1, which is parquet-java's and Arrow's JSON format for wrapped keys.

A file stores key metadata for its footer key and for each column key (Encryption.md, 3). It is the key material itself, or a
reference to an entry in a material file. Neither is authenticated, so all members are checked before use.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from dataclasses import dataclass
from typing import Any, NoReturn

from fastpq.errors import FormatError, LimitError, UnsupportedError

MATERIAL_TYPE = "PKMT1"
# Entry names in a material file, as in parquet-java and Arrow.
FOOTER_REFERENCE = "footerKey"
COLUMN_REFERENCE = "columnKey{}"
# A file that replaces another one under the same name has references of a new generation: "footerKey-GENERATION". The material
# file holds the keys of both files until the new one is in its place.
GENERATION_MARK = "-"

LARGEST_MATERIAL = 1 << 16      # in bytes. The wrapped keys of known key services are far smaller
LARGEST_MATERIAL_FILE = 1 << 26     # in bytes


@dataclass(frozen=True)
class KeyMaterial:
    """A wrapped data key (DEK).

    Attributes:
        is_footer_key: whether this is the footer's data key.
        kms_instance_id: key service instance. None if it is not stored. Column keys do not store it, because their service is
            that of the footer key.
        kms_instance_url: the instance's URL. It is only as trustworthy as the file.
        master_key_id: identifier of the master key in the key service.
        wrapped_dek: the data key. Either the key service has wrapped it, or a key encryption key (KEK) encrypts it
            (secret.seal_key, in base64).
        kek_id: identifier of this KEK. It is also the AAD of the encryption. None if the key service has wrapped the data key.
        wrapped_kek: the KEK, which the key service has wrapped. None if there is no KEK.
    """

    is_footer_key: bool
    kms_instance_id: str | None
    kms_instance_url: str | None
    master_key_id: str
    wrapped_dek: str
    kek_id: bytes | None = None
    wrapped_kek: str | None = None

    def serialize(self, *, internal: bool) -> str:
        """Return the material as JSON text, with its members in Arrow's order.

        Args:
            internal: True if the text goes into the file's key metadata, False if it goes into a material file.

        Raises:
            LimitError: the text has more than 64 KiB. Only a key service that returns very long wrapped keys can cause this.
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
            members["keyEncryptionKeyID"] = encode_base64(self.kek_id)
            members["wrappedKEK"] = self.wrapped_kek
        text = json_text(members)
        _check_size(len(text.encode()), LARGEST_MATERIAL, "key material")
        return text


def parse_key_metadata(key_metadata: bytes) -> KeyMaterial | str:
    """Parse key metadata. Return the key material, or the reference to an entry in the material file.

    Raises:
        FormatError: the key metadata is not PKMT1.
        UnsupportedError: the key metadata has another type.
        LimitError: the key metadata has more than 64 KiB.
    """
    members = _parse(key_metadata, "key metadata")
    if _boolean(members, "internalStorage"):
        return _material(members)
    return _text(members, "keyReference")


def parse_key_material(text: str) -> KeyMaterial:
    """Parse an entry in a material file. It raises the same errors as parse_key_metadata."""
    return _material(_parse(text.encode(), "key material"))


def serialize_reference(reference: str) -> bytes:
    """Return key metadata that refers to an entry in the material file."""
    return json_text({"keyMaterialType": MATERIAL_TYPE, "internalStorage": False, "keyReference": reference}).encode()


def new_generation() -> str:
    """Return the end of all references in a new file that replaces another one under the same name."""
    return GENERATION_MARK + secrets.token_hex(8)


def generation_of(reference: str) -> str:
    """Return the end of a reference that all keys of one file share. Empty if the file replaced no other."""
    _, mark, generation = reference.partition(GENERATION_MARK)
    return mark + generation


def parse_material_file(data: bytes) -> dict[str, str]:
    """Return a material file's entries by their names. Each entry is a JSON text that parse_key_material parses.

    Raises:
        FormatError: the data is not a JSON object whose values are strings.
        LimitError: the data has more than 64 MiB.
    """
    members = parse_object(data, LARGEST_MATERIAL_FILE, "key material file")
    for reference, text in members.items():
        if not isinstance(text, str):
            _refuse(f"the entry {abbreviate(reference)} is not a string")
    return members


def json_text(members: dict[str, Any]) -> str:
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False)


def parse_object(data: bytes, limit: int, what: str) -> dict[str, Any]:
    """Parse a JSON object. Refuse a name that occurs twice in one object, because other parsers may use another of its values.

    Args:
        data: JSON in UTF-8.
        limit: largest size in bytes.
        what: what errors call the data.

    Raises:
        FormatError: the data is not a JSON object, or an object has a name twice.
        LimitError: the data is longer than limit.
    """
    _check_size(len(data), limit, what)
    try:
        members = json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
        json.dumps(members, ensure_ascii=False).encode()     # fails for an escaped lone surrogate, which is not text
    except FormatError:
        raise
    except (ValueError, RecursionError):
        raise FormatError(f"{what} is not JSON in UTF-8") from None
    if not isinstance(members, dict):
        raise FormatError(f"{what} is not a JSON object")
    return members


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decode_base64(text: str, what: str) -> bytes:
    """Decode standard base64 with padding.

    Raises:
        FormatError: the text is anything else.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    if data is None or encode_base64(data) != text:
        raise FormatError(f"{what} is not base64")
    return data


def _parse(data: bytes, what: str) -> dict[str, Any]:
    members = parse_object(data, LARGEST_MATERIAL, what)
    material_type = _text(members, "keyMaterialType")
    if material_type != MATERIAL_TYPE:
        raise UnsupportedError(f"key material of type {abbreviate(material_type)}: only {MATERIAL_TYPE} is supported")
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
        _refuse(f"{name} is {'not a boolean' if name in members else 'missing'}")
    return value


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        _refuse(f"{name} is {'not text' if name in members else 'missing'}")
    return value


def _optional_text(members: dict[str, Any], name: str) -> str | None:
    return _text(members, name) if name in members else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("a name occurs twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _check_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise LimitError(f"{what} of {size} bytes: at most {limit} are allowed")


def abbreviate(text: str) -> str:
    """Return a text from a file as error messages show it: in quotes, with at most 40 characters and "..."."""
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _refuse(problem: str) -> NoReturn:
    raise FormatError(f"malformed key material: {problem}")
