"""Take columns of a folder away from who may use their old keys.

Section: Keys
"""

from __future__ import annotations

import click

from fastpq.cli.folder_keys import (
    KeyChangeFacts,
    check_folder,
    folder_options,
    show_key_changes,
    split_names,
    trusted_keys_option,
)
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import dry_run_option


@verb(
    examples=[
        (
            "fastpq revoke sealed -c price --master-key kn --trusted-keys kf,kc,kn --keyring keyring.json --table-id items",
            "The column price, for all who may use kn.",
        ),
    ],
    facts=KeyChangeFacts,
)
@click.argument("folder", metavar="FOLDER")
@click.option("--columns", "-c", required=True, metavar="NAMES", help="Columns, with commas between them.")
@click.option("--master-key", required=True, metavar="ID", help="Their new master key.")
@trusted_keys_option
@dry_run_option
def command(
    session: Session, folder: str, columns: str, master_key: str, trusted_keys: str | None, dry_run: bool
) -> None:
    """Encrypt the files of a folder under new data keys, and the named columns under a new master key, page by page.

    Copies that somebody has taken before stay readable with the old keys. --trusted-keys has to list the old master keys and the
    new one. Each file is replaced in one step. If the call is interrupted, the same call does the rest.
    """
    from fastpq.datasets.key_changes import revoke

    check_folder(folder)
    keys = session.keys.dataset_decryption(split_names(trusted_keys))
    with session.progress("revoking", "files") as bar:
        report = revoke(
            folder, split_names(columns) or [], master_key, keys, **folder_options(session, dry_run=dry_run, bar=bar))
    show_key_changes(session, folder, report, dry_run=dry_run)
