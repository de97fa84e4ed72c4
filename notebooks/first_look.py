# Databricks notebook source
# MAGIC %md
# MAGIC # Corpus Weir: a first look
# MAGIC Runs jobs in the notebook's own session, then calls a pure function on a DataFrame. Install the wheel on the cluster first.

# COMMAND ----------
dbutils.widgets.text("settings", "weir.yaml", "Settings file")
dbutils.widgets.text("run_id", "first-look", "Run id")

# COMMAND ----------
from jobs.registry import pipeline
from jobs.runtime.cli import load_settings
from jobs.runtime.job import run_job

settings = load_settings([dbutils.widgets.get("settings")], []).settings
results = [
    run_job(spark, job, settings, dbutils.widgets.get("run_id"), step, quiet=True) for job, step in pipeline(settings)
]

# COMMAND ----------
from jobs.runtime.funnel import print_funnel

print_funnel([result.record for result in results])

# COMMAND ----------
# MAGIC %md
# MAGIC Decide on any DataFrame, without a table: which rows would a rule drop, and why?

# COMMAND ----------
from pyspark.sql import functions as F

from jobs.quality_filter import Rule, quality_decisions
from jobs.runtime.tables import TableRef, latest_version, Pinned

ref = TableRef.in_warehouse(settings.warehouse, "documents")
documents = Pinned("documents", ref, latest_version(spark, ref)).read(spark)
dropped = quality_decisions(documents.drop("text"), [Rule(name="too_short", keep="characters >= 100")])
dropped.groupBy("source", "reason").agg(F.count("*").alias("documents")).show()
