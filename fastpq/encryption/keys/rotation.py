"""Master key rotation: unwraps data keys with the old version of a master key and wraps the keys with the new version."""

from __future__ import annotations

from collections.abc import Callable

from fastpq.encryption.keys.cache import TokenCache
from fastpq.encryption.keys.material import FOOTER_REFERENCE, parse_key_material
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.keys.unwrapping import FileKeyUnwrapper
from fastpq.encryption.keys.wrapping import FileKeyWrapper, KeyEncryptionKey
from fastpq.errors import FormatError, ParquetError, SchemaError

SHOWN = 3       # most file names in an error

UnwrapperOf = Callable[[MaterialFile], FileKeyUnwrapper]


def rotate(place: MaterialPath, unwrapper_of: UnwrapperOf, double_wrapping: bool) -> list[str]:
    """Rotate the master keys of a file or of all files of a folder.

    Args:
        place: the file or folder.
        unwrapper_of: makes the unwrapper of a material file.
        double_wrapping: wrap with new KEKs, one for each master key and all files.

    Returns:
        Paths of the files.

    Raises:
        SchemaError: a file without a material file, or no file; nothing is rotated then.
        KeyAccessError: the key service does not unwrap or wrap a key.
    """
    files = _parquet_files(place)
    keks: TokenCache[KeyEncryptionKey] = TokenCache()
    for file in files:
        material_file = MaterialFile(file)
        try:
            _rotate_file(material_file, unwrapper_of(material_file), double_wrapping, keks)
        except ParquetError as error:
            error.at(path=file.path)
            raise
    return [file.path for file in files]


def _rotate_file(
    material_file: MaterialFile,
    unwrapper: FileKeyUnwrapper,
    double_wrapping: bool,
    keks: TokenCache[KeyEncryptionKey],
) -> None:
    entries = {reference: parse_key_material(text) for reference, text in unwrapper.entries().items()}
    if FOOTER_REFERENCE not in entries:
        raise FormatError("a key material file without the footer key")
    service = unwrapper.service()     # the footer key's material names the key service, if the caller does not
    keys = {reference: unwrapper.unwrap(material) for reference, material in entries.items()}
    wrapper = FileKeyWrapper(
        service,
        double_wrapping=double_wrapping,
        kek_bits=max(key.bits for key in keys.values()),
        keks=keks,
    )
    material_file.write(
        {
            reference: wrapper.material(
                keys[reference], material.master_key_id, material.is_footer_key
            ).serialize(internal=False)
            for reference, material in entries.items()
        }
    )


def _parquet_files(place: MaterialPath) -> list[MaterialPath]:
    files = list(place.visible_files()) if place.is_folder() else [place]
    if not files:
        raise SchemaError("no files to rotate master keys for", path=place.path)
    without = [file for file in files if not MaterialFile(file).exists()]
    if without:
        names = ", ".join(file.name for file in without[:SHOWN]) + (", ..." if len(without) > SHOWN else "")
        raise SchemaError(
            f"no key material file for {names}: master keys of files that hold their key material themselves can only be "
            "rotated by writing the files anew",
            path=place.path,
        )
    return files
