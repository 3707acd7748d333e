"""Encrypt a file or a folder, or a file again under other keys.

Section: Make files
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from fastpq.cli.failures import KEYS, CommandFailure
from fastpq.cli.folder_keys import FileOrFolderFacts, check_one_target, folder_options, show_folder
from fastpq.cli.places import STANDARD_STREAM, source_of, target_of
from fastpq.cli.rewriting_result import any_encrypted, show_report
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import encryption_options, new_dataset_encryption, new_encryption, target_or_folder_options

_NEW_KEYS = "--footer-key ID with --keyring or --kms, or --new-keys-fd N"


@verb(
    examples=[
        (
            "fastpq encrypt items.parquet -o sealed.parquet --keyring keyring.json --footer-key kf",
            "One master key for the whole file.",
        ),
        (
            "fastpq encrypt items.parquet -o columns.parquet --keyring keyring.json --footer-key kf --column-key kc:price,user",
            "Two columns under another master key.",
        ),
        (
            "fastpq encrypt plain --keyring keyring.json --footer-key kf --column-key kc:price --new-table-id items",
            "All files of a folder, in place. Files that were exchanged later are noticed.",
        ),
    ],
    facts=FileOrFolderFacts,
)
@click.argument("source", metavar="FILE")
@target_or_folder_options
@encryption_options
def command(session: Session, source: str, output: str | None, dry_run: bool, **values: Any) -> None:
    """Encrypt a file page by page, without decoding values. The target may be the source. A folder is encrypted in place.

    In a folder, each file is replaced in one step. If the call is interrupted, the same call does the rest. A plaintext file
    among encrypted ones is refused, unless an interrupted call explains it or --allow plaintext-files is there. Readers with keys
    need --allow plaintext-files too, as long as some files are still plaintext.

    Columns without a key of their own get the footer key, unless --unlisted plaintext is there. With --plaintext-footer and
    --column-key, --unlisted has to be there. The keys of an encrypted source come from the same places as those of other verbs.
    """
    from fastpq.rewriting.files import encrypt_file

    if check_one_target(source, output, dry_run=dry_run):
        _encrypt_folder(session, source, values, dry_run=dry_run)
        return
    assert output is not None
    encryption = new_encryption(values, session.keys, output)
    if encryption is None:
        raise CommandFailure("no key for the new file is named", KEYS, _NEW_KEYS)
    keys = None
    if source == STANDARD_STREAM or any_encrypted(session, [source]):  # the keys may be meant for the new file alone
        keys = session.keys.decryption_of(source)
    with session.progress("encrypting") as bar:
        report = encrypt_file(
            source_of(source),
            target_of(output),
            encryption,
            decryption_properties=keys,
            progress=bar,
            **session.reader_options,
        )
    show_report(session, report, output)


def _encrypt_folder(session: Session, folder: str, values: Mapping[str, Any], *, dry_run: bool) -> None:
    from fastpq.datasets.key_changes import encrypt_dataset

    encryption = new_dataset_encryption(values, session.keys)
    if encryption is None:
        raise CommandFailure("no key for the new files is named", KEYS, _NEW_KEYS)
    with session.progress("encrypting", "files") as bar:
        report = encrypt_dataset(folder, encryption, **folder_options(session, dry_run=dry_run, bar=bar))
    show_folder(session, folder, report, dry_run=dry_run)
