"""Atomic replacement of a dataset's files by files made from them in tasks; jobs over datasets are done so."""

from __future__ import annotations

import hashlib
import os
from typing import Literal

from pyspark.sql import DataFrame, Row, SparkSession

from fastpq.common.progress import Progress
from fastpq.errors import SchemaError
from fastpq.io.object_store import url_of
from fastpq.spark.keyservice import Encryption
from fastpq.spark.listing import local_path, store_of
from fastpq.spark.running import ERROR, SKIPPED, JobError, Work, report_of, run_tasks
from fastpq.spark.staging import FolderStage, Replacement, Stage, WriteFile
from fastpq.spark.store_staging import StoreStage
from fastpq.spark.stores import check_material, data_files, require_store

Skipping = Literal["some", "all", "none"]


def stage_of(path: str, operation: str, encryption: Encryption | None, *settings: object) -> Stage:
    """Begin or find the stage of a job, on the driver, after finishing interrupted commits.

    Args:
        path: the dataset's folder.
        operation: operation of the job, the first part of its name.
        encryption: of the new files; None for plaintext files.
        *settings: all other inputs of the new files, hashed with ``encryption`` into the job's name.

    Raises:
        SchemaError: the path is no folder.
        UnsupportedError: a store other than S3, Azure and Google's, or key material beside files in a store.
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
        spark, stage, replacements, write, progress: of the job.
        skipping: whether ``write`` may skip ``"some"`` files; ``"all"`` files or none, as a job that was done before; or
            ``"none"``. Files that stand out may be forgeries in the place of encrypted files.

    Returns:
        The report: a row for each replacement.

    Raises:
        JobError: a file could not be made, or was skipped against ``skipping``. The dataset stays as it was; the job can be run
            again.
        SchemaError: a source changed during the job. The dataset stays as it was; the job can be run again.
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
    """Why the new files may not take the place of their sources; None if they may."""
    failed = [row for row in rows if row.status == ERROR]
    if failed:
        return (
            f"{len(failed)} of {len(rows)} files failed, and the dataset stays as it was; a job that is run again goes on from "
            f"here. The first error: {failed[0].error}"
        )
    skipped = sum(row.status == SKIPPED for row in rows)
    if skipping != "some" and 0 < skipped < len(rows):
        return (
            "plaintext and encrypted files stand side by side, and one may have been put in the place of another; the dataset "
            "stays as it was (allowPlaintextFiles=true goes on)"
        )
    if skipping == "none" and skipped:
        return (
            f"all {skipped} files are plaintext: the job was done before, or plaintext files were put in the place of encrypted "
            "ones; the dataset stays as it was (allowPlaintextFiles=true reports the files as skipped)"
        )
    return None
