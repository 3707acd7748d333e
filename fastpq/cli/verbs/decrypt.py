"""Decrypt a file, or all files of a folder.

Section: Make files
"""

from __future__ import annotations

import click

from fastpq.cli.failures import KEYS, CommandFailure
from fastpq.cli.folder_keys import FileOrFolderFacts, check_one_target, folder_options, show_folder
from fastpq.cli.places import source_of, target_of
from fastpq.cli.rewriting_result import show_report
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import target_or_folder_options


@verb(
    examples=[
        ("fastpq decrypt secret.parquet -o open.parquet", "With keys from FASTPQ_KEYS."),
        (
            "fastpq decrypt sealed.parquet -o open.parquet --keyring keyring.json",
            "With a keyring, whose passphrase is in FASTPQ_PASSPHRASE.",
        ),
        ("fastpq decrypt old --keyring keyring.json", "All files of a folder, in place."),
    ],
    facts=FileOrFolderFacts,
)
@click.argument("source", metavar="FILE")
@target_or_folder_options
def command(session: Session, source: str, output: str | None, dry_run: bool) -> None:
    """Write an encrypted file as plaintext, page by page, without decoding values. A folder is decrypted in place.

    In a folder, each file is replaced in one step. If the call is interrupted, the same call does the rest. A plaintext file is
    refused, unless an interrupted call explains it or --allow plaintext-files is there. Readers with keys need --allow
    plaintext-files too, as long as some files are still encrypted. Without --table-id, files that were exchanged with each other
    are decrypted where they are.
    """
    from fastpq.rewriting.files import decrypt_file

    if check_one_target(source, output, dry_run=dry_run):
        _decrypt_folder(session, source, dry_run=dry_run)
        return
    assert output is not None
    keys = session.keys.decryption_of(source)
    if keys is None:
        raise CommandFailure("no keys are named", KEYS, "--keyring FILE, --kms NAME, --keys-fd N or FASTPQ_KEYS")
    with session.progress("decrypting") as bar:
        report = decrypt_file(source_of(source), target_of(output), keys, progress=bar, **session.reader_options)
    show_report(session, report, output)


def _decrypt_folder(session: Session, folder: str, *, dry_run: bool) -> None:
    from fastpq.datasets.key_changes import decrypt_dataset

    keys = session.keys.dataset_decryption()
    with session.progress("decrypting", "files") as bar:
        report = decrypt_dataset(folder, keys, **folder_options(session, dry_run=dry_run, bar=bar))
    show_folder(session, folder, report, dry_run=dry_run)
