"""Options of verbs that write Parquet: where to, how, and with which encryption."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fastpq.cli.failures import KEYS, USAGE, CommandFailure
from fastpq.cli.key_sources import ExplicitKeys, KeySource, parse_keys, read_descriptor
from fastpq.cli.places import FORCE, STANDARD_STREAM
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    from fastpq.encryption.dataset_properties import DatasetEncryptionProperties
    from fastpq.encryption.keys.configuration import EncryptionConfiguration
    from fastpq.encryption.properties import FileEncryptionProperties

NEW_KEYS_VARIABLE = "FASTPQ_NEW_KEYS"
F = Callable[..., Any]



def _note_force(context: click.Context, option: click.Parameter, is_set: bool) -> None:
    context.meta[FORCE] = is_set


# Lets a verb replace a file of another kind. ``target_of`` and ``refuse_parquet_target`` look for it.
force_option = click.option(
    "--force", is_flag=True, expose_value=False, callback=_note_force, help="Replace an existing file that has another format."
)


def target_option(function: F) -> Any:
    """Give a verb the options ``--output`` and ``--force``."""
    text = "The new file. It appears whole or not at all."
    return click.option("--output", "-o", required=True, metavar="FILE", help=text)(force_option(function))


def target_or_folder_options(function: F) -> Any:
    """Give a verb the options ``--output`` and ``--force``, and ``--dry-run`` for a folder, which is changed itself."""
    text = "The new file. It appears whole or not at all. A folder is changed itself."
    return click.option("--output", "-o", metavar="FILE", help=text)(force_option(dry_run_option(function)))


dry_run_option = click.option("--dry-run", is_flag=True, help="Change nothing in the folder, and say what would be changed.")


_ENCRYPTION = (
    click.option("--footer-key", metavar="ID", help="Encrypt, with this master key for the footer."),
    click.option(
        "--column-key", "column_keys", multiple=True, metavar="ID:NAMES", help="Master key for some columns. May be repeated."
    ),
    click.option(
        "--new-keys-fd",
        type=int,
        metavar="N",
        help=f"Encrypt with explicit keys, as --keys-fd has them [or {NEW_KEYS_VARIABLE}].",
    ),
    click.option("--plaintext-footer", is_flag=True, help="Leave the footer readable without a key, and sign it."),
    click.option(
        "--unlisted",
        type=click.Choice(["footer-key", "plaintext", "raise"]),
        help="What happens to columns without a key of their own. They get the footer key unless the footer is plaintext. Then "
        "this option has to be there.",
    ),
    click.option(
        "--plaintext-column",
        "plaintext_columns",
        multiple=True,
        metavar="NAME",
        help="A column that stays readable to everybody, whatever --unlisted says. May be repeated.",
    ),
    click.option(
        "--algorithm",
        type=click.Choice(["AES_GCM_V1", "AES_GCM_CTR_V1"]),
        default="AES_GCM_V1",
        show_default=True,
        help="Algorithm.",
    ),
    click.option(
        "--key-bits", type=click.Choice(["128", "192", "256"]), default="128", show_default=True, help="Length of new data keys."
    ),
    click.option(
        "--external-keys", is_flag=True, help="Store wrapped keys in a file beside the new file, so that they can be rotated."
    ),
    click.option("--new-aad-prefix", metavar="TEXT", help="The new file's AAD prefix, which it stores."),
    click.option("--new-table-id", metavar="ID", help="Bind the new file to this table and to its own name."),
    click.option(
        "--new-table-root", metavar="FOLDER", help="Folder of the table. Binds the new file to its path below it."
    ),
)
_PROPERTIES = (
    click.option("--compression", metavar="CODEC", help="zstd, snappy, gzip, brotli, lz4 or none."),
    click.option("--compression-level", type=int, metavar="N", help="Level of the codec."),
    click.option("--encoding", type=click.Choice(["auto"]), help="Choose an encoding for each column from a sample."),
    click.option("--row-group-size", type=int, metavar="ROWS", help="Largest row group."),
    click.option("--data-page-size", type=int, metavar="BYTES", help="Target size of a page before compression."),
    click.option("--data-page-rows", type=int, metavar="ROWS", help="Largest page."),
    click.option("--sort-by", metavar="NAMES", help="Sort each row group by these columns. A minus before a name reverses it."),
    click.option("--bloom-filter", metavar="NAMES", help="Columns that get a bloom filter."),
    click.option(
        "--recipe", metavar="FILE", help="JSON with any options of WriterProperties, or a recipe of doctor. Other options win. "
        "A recipe with steps stands alone."
    ),
)


def _decorated(options: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


encryption_options = _decorated(_ENCRYPTION)
property_options = _decorated(_PROPERTIES)
plaintext_option = click.option("--plaintext", is_flag=True, help="Write plaintext although the source is encrypted.")


def writer_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of WriterProperties that the user names."""
    options: dict[str, Any] = {} if values["recipe"] is None else _options_of_recipe(values["recipe"])
    for name in ("compression", "compression_level", "encoding", "row_group_size", "data_page_size", "data_page_rows"):
        if values[name] is not None:
            options[name] = values[name]
    if values["bloom_filter"]:
        options["bloom_filter"] = dict.fromkeys(values["bloom_filter"].split(","), True)
    if values["sort_by"]:
        from fastpq.options import SortingColumn

        options["sort_by"] = [
            SortingColumn(name.removeprefix("-"), name.startswith("-")) for name in values["sort_by"].split(",")
        ]
    return options


def _options_of_recipe(path: str) -> dict[str, Any]:
    """Return the options of a recipe. One with steps is refused."""
    from fastpq.advice.writing_settings import writer_options_of

    members = read_recipe(path)
    if "steps" in members:
        raise CommandFailure(f"the recipe {path!r} has steps", USAGE, "fastpq rewrite --recipe makes them, without other options")
    return writer_options_of(members)


def read_recipe(path: str) -> dict[str, Any]:
    """Return the JSON object in a file: options of WriterProperties, or ``steps``."""
    import json

    with open(path, "rb") as file:
        try:
            members = json.load(file)
        except ValueError as error:
            raise CommandFailure(f"the recipe {path!r} is not JSON: {error}", USAGE) from error
    if not isinstance(members, dict):
        raise CommandFailure(f"the recipe {path!r} is not a JSON object", USAGE, 'for example {"compression": "zstd"}')
    return members


def new_encryption(values: Mapping[str, Any], keys: KeySource, target: str) -> FileEncryptionProperties | None:
    """Return the encryption of the new file, or None if the user names no key for it.

    Args:
        values: parsed ``encryption_options``.
        keys: where master keys come from.
        target: the new file, beside which external key material lies.
    """
    explicit = _new_keys(values["new_keys_fd"])
    prefix = _new_prefix(values, target)
    if explicit is not None:
        return _explicit_encryption(values, explicit, prefix)
    configuration = _configuration(values)
    if configuration is None:
        return None
    return keys.factory().file_encryption_properties(keys.connection(), configuration, target, aad_prefix=prefix)


def new_dataset_encryption(values: Mapping[str, Any], keys: KeySource) -> DatasetEncryptionProperties | None:
    """Return the encryption of all files of a folder, or None if the user names no key for them. Arguments as above."""
    from fastpq.encryption.dataset_properties import DatasetEncryptionProperties

    if values["new_aad_prefix"] is not None:
        raise CommandFailure("the files of a folder cannot share an AAD prefix", USAGE, "--new-table-id ID gives each its own")
    binding = {"table_id": values["new_table_id"], "root": values["new_table_root"]}
    _check_binding(values)
    explicit = _new_keys(values["new_keys_fd"])
    if explicit is not None:
        return DatasetEncryptionProperties(_explicit_encryption(values, explicit, None), **binding)
    configuration = _configuration(values)
    if configuration is None:
        return None
    return keys.factory().dataset_encryption_properties(keys.connection(), configuration, **binding)


def _check_binding(values: Mapping[str, Any]) -> None:
    if values["new_table_root"] is not None and values["new_table_id"] is None:
        raise CommandFailure("--new-table-root needs --new-table-id", USAGE)


def _new_prefix(values: Mapping[str, Any], target: str) -> bytes | None:
    """Return the AAD prefix of the new file."""
    _check_binding(values)
    if values["new_table_id"] is None:
        return None if values["new_aad_prefix"] is None else values["new_aad_prefix"].encode()
    if values["new_aad_prefix"] is not None or target == STANDARD_STREAM:
        raise CommandFailure("--new-table-id needs a file with a name, and no --new-aad-prefix", USAGE)
    from fastpq.encryption.dataset_properties import bound_prefix

    return bound_prefix(target, values["new_table_id"], values["new_table_root"])


def _configuration(values: Mapping[str, Any]) -> EncryptionConfiguration | None:
    """Return the master keys that the user names, or None."""
    if values["footer_key"] is None:
        if values["column_keys"]:
            raise CommandFailure("--column-key needs --footer-key", USAGE)
        return None
    from fastpq.encryption.keys.configuration import EncryptionConfiguration

    columns = _columns_by_key(values["column_keys"])
    if values["plaintext_columns"] and not columns:
        raise CommandFailure("--plaintext-column needs --column-key: one key encrypts all columns", USAGE)
    return EncryptionConfiguration(
        values["footer_key"],
        columns,
        uniform_encryption=not columns,
        encryption_algorithm=values["algorithm"],
        plaintext_footer=values["plaintext_footer"],
        internal_key_material=not values["external_keys"],
        data_key_length_bits=int(values["key_bits"]),
        unlisted=_unlisted(values, has_columns=bool(columns)),
        plaintext_columns=values["plaintext_columns"],
    )


@hides_arguments
def _new_keys(descriptor: int | None) -> ExplicitKeys | None:
    if descriptor is not None:
        return parse_keys(read_descriptor(descriptor, "--new-keys-fd"), "--new-keys-fd")
    text = os.environ.get(NEW_KEYS_VARIABLE)
    return None if text is None else parse_keys(text, NEW_KEYS_VARIABLE)


def _explicit_encryption(values: Mapping[str, Any], explicit: ExplicitKeys, prefix: bytes | None) -> FileEncryptionProperties:
    from fastpq.encryption.properties import FileEncryptionProperties

    if explicit.footer_key is None:
        raise CommandFailure("the keys for the new file have no footer_key", KEYS)
    if values["footer_key"] is not None or values["external_keys"]:
        raise CommandFailure("explicit keys for the new file cannot stand with --footer-key or --external-keys", USAGE)
    return FileEncryptionProperties(
        explicit.footer_key,
        explicit.column_keys,
        plaintext_footer=values["plaintext_footer"],
        algorithm=values["algorithm"],
        aad_prefix=prefix,
        unlisted=_unlisted(values),
        plaintext_columns=values["plaintext_columns"],
    )


def _unlisted(values: Mapping[str, Any], *, has_columns: bool = True) -> Any:
    """Return the option --unlisted as an argument. Without columns it is None, and a value that contradicts this is refused."""
    word = values["unlisted"]
    if not has_columns and word not in (None, "footer-key"):
        raise CommandFailure(f"--unlisted {word} needs --column-key: one key encrypts all columns", USAGE)
    return word.replace("-", "_") if word is not None and has_columns else None


def _columns_by_key(texts: tuple[str, ...]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for text in texts:
        identifier, _, names = text.rpartition(":")
        if not identifier or not names:
            raise CommandFailure(f"{text!r} is not ID:NAMES", USAGE, "for example --column-key sales:price,discount")
        columns.setdefault(identifier, []).extend(names.split(","))
    return columns


@contextmanager
def naming_source(places: Sequence[str]) -> Iterator[None]:
    """Name the source in errors about the schema. The writer names the new file, which does not exist then."""
    try:
        yield
    except SchemaError as error:
        if error.context.get("path") not in places:
            error.context["path"] = places[0]
            if places[0] == STANDARD_STREAM:
                del error.context["path"]
        raise


def refuse_plaintext_copy(is_source_encrypted: bool, encryption: object, plaintext: bool) -> None:
    """Refuse to write an encrypted file's values as plaintext unless the user says so."""
    if is_source_encrypted and encryption is None and not plaintext:
        raise CommandFailure(
            "the source is encrypted, and the new file would not be", KEYS, "--footer-key ID encrypts it, --plaintext allows it"
        )
