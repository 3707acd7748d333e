"""Jobs over datasets: tasks make new files from a dataset's files, and the new files replace them atomically."""

from __future__ import annotations

import hashlib
import os
from typing import Literal

from pyspark.sql import DataFrame, Row, SparkSession

from fastpq.spark.core import SchemaError, url_of
from fastpq.spark.jobs.running import ERROR, SKIPPED, JobError, Progress, Work, report_of, run_tasks
from fastpq.spark.jobs.staging import FolderStage, Replacement, Stage, WriteFile
from fastpq.spark.jobs.store_staging import StoreStage
from fastpq.spark.keyservice import Encryption
from fastpq.spark.tables.listing import local_path, store_of
from fastpq.spark.write.store_writer import check_material, data_files, require_store

Skipping = Literal["some", "all", "none"]


def stage_of(path: str, operation: str, encryption: Encryption | None, *settings: object) -> Stage:
    """Finish interrupted commits, then begin a job's stage or find an earlier one. This runs on the driver.

    Args:
        path: the dataset's folder.
        operation: what the job does. The job's name begins with it.
        encryption: encryption for the new files. None makes plaintext files.
        *settings: all other inputs that shape the new files. They and ``encryption`` are hashed into the job's name.

    Raises:
        SchemaError: the path is not a folder.
        UnsupportedError: the store is not S3, Azure or Google's, or key material would be beside files in a store.
    """
    job = f"{operation}-{hashlib.sha256(repr((encryption, *settings)).encode()).hexdigest()[:16]}"
    stage: Stage
    if store_of(path) is None:
        root = local_path(path)
        stage, is_folder = FolderStage(root, job), os.path.isdir(root)
    else:
        check_material(encryption)
        place = require_store(path)
        stage, is_folder = StoreStage(url_of(place.filesystem, place.path), job), bool(data_files(place))
    if not is_folder:
        raise SchemaError("a job that replaces files needs the folder of a dataset", path=path)
    stage.begin()
    return stage


def replace(
    spark: SparkSession,
    stage: Stage,
    replacements: list[Replacement],
    write: WriteFile,
    progress: Progress | None,
    *,
    skipping: Skipping = "some",
) -> DataFrame:
    """Make all new files on executors, then swap them for their sources.

    Args:
        spark, stage, replacements, write, progress: the job's parts.
        skipping: which files ``write`` may skip. ``"some"`` allows any. ``"all"`` allows all files or none, since a job that was
            done before skips them all. ``"none"`` allows no file. A file that stands out may be a forgery in an encrypted file's
            place.

    Returns:
        The report, with a row for each replacement.

    Raises:
        JobError: a file could not be made, or was skipped against ``skipping``. The dataset stays as it was. The job can be run
            again.
        SchemaError: a source changed during the job. The dataset stays as it was. The job can be run again.
    """
    work: Work[Replacement] = Work(
        stage.job,
        lambda one: (stage.path_of(one.sources[0]), sum(one.sizes)),
        lambda one: stage.make(one, write),
    )
    rows = run_tasks(spark, replacements, work, progress)
    report = report_of(spark, rows)
    if problem := _problem(rows, skipping):
        if all(row.status == SKIPPED for row in rows):
            stage.abandon()
        error = JobError(problem)
        error.report = report
        raise error
    stage.commit(replacements, rows)
    return report


def _problem(rows: list[Row], skipping: Skipping) -> str | None:
    """Return the reason why the new files may not replace their sources. None if they may."""
    failures = [row for row in rows if row.status == ERROR]
    if failures:
        return (
            f"{len(failures)} of {len(rows)} files failed, and the dataset stays as it was; a job that is run again goes on from "
            f"here. The first error: {failures[0].error}"
        )
    skip_count = sum(row.status == SKIPPED for row in rows)
    if skipping != "some" and 0 < skip_count < len(rows):
        return (
            "plaintext and encrypted files stand side by side, and one may have been put in the place of another; the dataset "
            "stays as it was (allowPlaintextFiles=true goes on)"
        )
    if skipping == "none" and skip_count:
        return (
            f"all {skip_count} files are plaintext: the job was done before, or plaintext files were put in the place of "
            "encrypted ones; the dataset stays as it was (allowPlaintextFiles=true reports the files as skipped)"
        )
    return None
