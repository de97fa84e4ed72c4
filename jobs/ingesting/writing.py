"""Storing what was taken in: rejects first, then documents, each in one commit, once per run."""

from __future__ import annotations

import hashlib
import json

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.runtime.failures import conflict_of, translate
from jobs.runtime.job import Context
from jobs.runtime.session import configured
from jobs.runtime.tables import Written, find_commit, latest_version, sql_in, sql_string
from schemas.tables import DOCUMENTS, REJECTS


def commit_documents(context: Context, documents: DataFrame) -> None:
    """Add documents; where an id is in the table with another text, put the new row in its place.

    An append would let two runs add the same ids at the same time. Replacing this run's own (empty) slice of the
    batch makes Delta look at what others added to the batch meanwhile: the later one is told, and judges again.
    """
    # The version that this commit is about to make: later runs see a larger one. Should another run commit in between
    # to another batch, the two share a rank, and the rest of a survivor rule decides between their documents.
    arrival = (latest_version(context.spark, context.ref("documents")) or 0) + 1
    frame = documents.withColumns({"ingest_run": F.lit(context.run_id), "arrival": F.lit(arrival).cast("bigint")})
    if "old_batch" in documents.columns and not documents.where(F.col("fate") == "changed").isEmpty():
        _merge(context, frame)
        return
    batches = sorted({source.batch or context.settings.batch for source in context.settings.ingest.values()})
    condition = f"{sql_in('batch', batches)} AND ingest_run = {sql_string(context.run_id)}"
    context.write(frame.select(*DOCUMENTS.column_names), "documents", replace_where=condition)


def commit_rejects(context: Context, rejects: DataFrame, fates: DataFrame) -> None:
    """Add the rejected records that the table does not hold yet; delivering the same files again adds none."""
    repeated = fates.where(F.col("fate") == "repeated").select(
        "file",
        "record",
        "source",
        "doc_id",
        F.lit("duplicate_id").alias("reason"),
        F.lit("the id was given before in the same delivery; the latest fetched_at was kept").alias("detail"),
        F.col("raw"),  # its text: the record was good but for the id
        F.col("text_sha256").alias("raw_sha256"),
    )
    columns = ["file", "record", "source", "doc_id", "reason", "detail", "raw", "raw_sha256"]
    wanted = rejects.select(*columns, "batch").unionByName(repeated.withColumn("batch", F.lit(context.settings.batch)))
    if context.has("rejects"):
        known = context.read("rejects").select("file", "record", "raw_sha256", "reason")
        wanted = wanted.join(known, ["file", "record", "raw_sha256", "reason"], "left_anti")
    rows = wanted.withColumns({"run_id": F.lit(context.run_id), "part": F.lit(0)})
    context.write(rows.select(*REJECTS.column_names), "rejects")


def _merge(context: Context, frame: DataFrame) -> None:
    """Insert and replace in one commit. The old row is found by its batch and id; it keeps its batch."""
    spark, ref = context.spark, context.ref("documents")
    key = f"{context.transaction}#{len(context.outputs) + 1}"
    done = find_commit(spark, ref, key)
    if done is not None:
        context.wrote(Written("documents", ref, done.version, done.rows, skipped=True))
        return
    stored = context.scratch.materialize(frame, "documents")
    batch = F.coalesce(F.col("old_batch"), F.col("batch"))
    rows = stored.withColumn("batch", batch).select(*DOCUMENTS.column_names)
    view = f"weir_changes_{hashlib.sha256(context.run_id.encode()).hexdigest()[:12]}"
    rows.createOrReplaceTempView(view)
    conf = {
        "spark.databricks.delta.write.txnAppId": key,
        "spark.databricks.delta.write.txnVersion": "1",
        "spark.databricks.delta.commitInfo.userMetadata": json.dumps(
            {"transaction": key, **context.facts()}, default=str
        ),
    }
    try:
        with configured(spark, conf):
            spark.sql(
                f"MERGE INTO {ref.identifier} AS old USING {view} AS new "
                "ON old.batch = new.batch AND old.doc_id = new.doc_id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()
    except Exception as error:
        if conflict_of(error) is None and not hasattr(error, "java_exception"):
            raise
        raise translate(error, f"writing table 'documents' ({ref.address})") from None
    finally:
        spark.catalog.dropTempView(view)
    found = find_commit(spark, ref, key)
    version = found.version if found is not None else (latest_version(spark, ref) or 0)
    context.wrote(Written("documents", ref, version, found.rows if found else 0, skipped=False))
