"""``weir audit``: documents that rules dropped and kept, for people to read, and what their verdicts say of the rules.

``--output`` writes the sampled documents with the beginning of their texts into a JSONL file; people fill in ``verdict``:
``good`` (belongs into the corpus) or ``bad``. ``--read`` takes the file back into the table ``verdicts``. Without either,
and after reading, the shares of wrong decisions are shown, per rule and source.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from jobs.runtime.display import print_table
from jobs.runtime.errors import InputContractError, TableMissing, UnreadableInput
from jobs.runtime.session import JOB_CONF, configured, get_session, stop_own_session
from jobs.runtime.tables import Pinned, TableRef, ensure_table, latest_version, write_table
from schemas.tables import VERDICTS
from udfs.intervals import wilson

if TYPE_CHECKING:
    from jobs.settings import Settings

KEY = ("policy", "step", "rule", "side", "doc_id")
ALL = "(all)"


@dataclass(frozen=True)
class Rate:
    """How often a rule, or keeping, was wrong in what people read.

    ``side`` dropped: wrong is good; kept: wrong is bad. ``low`` and ``high``: Wilson's 95 % interval. Of all sources
    (``source`` is ``(all)``) ``share`` and interval are those of the sample, which has as many documents of each source;
    ``weighted`` weighs each source by the documents that the rule dropped.
    """

    step: str
    rule: str
    side: str
    source: str
    judged: int
    wrong: int
    share: float | None
    low: float
    high: float
    weighted: float | None = None


def print_audit(
    settings: Settings,
    step: str | None,
    output: str | None,
    read: str | None,
    judge: str,
    characters: int,
    as_json: bool,
) -> int:
    """Carry out the command; returns the exit code.

    Raises:
        InputContractError: if there is no sample, or a file's rows are not about it.
    """
    spark = get_session(settings.spark)
    try:
        with configured(spark, JOB_CONF):
            if output is not None:
                number = write_sample(spark, settings, step, Path(output), characters)
                sys.stdout.write(
                    f"wrote {number:,} documents to {output}; set each verdict to good or bad, then: weir audit --read {output}\n"
                )
                found: list[Rate] = []
            else:
                if read is not None:
                    number = read_verdicts(spark, settings, Path(read), judge)
                    sys.stdout.write(f"{number:,} verdicts read from {read}\n")
                found = rates(spark, settings, step)
    finally:
        stop_own_session(spark)
    if output is None and not as_json:
        print_table(
            "wrong decisions, in what people read (95 % intervals)",
            ["step", "side", "rule", "source", "read", "wrong", "share", "from", "to", "weighted"],
            [
                [r.step, r.side, r.rule or "(none)", r.source, r.judged, r.wrong, *map(_percent, (r.share, r.low, r.high)),
                 _percent(r.weighted)]
                for r in found
            ],
            right=["read", "wrong", "share", "from", "to", "weighted"],
        )  # fmt: skip
    if as_json:
        sys.stdout.write(json.dumps({"status": "done", "exit_code": 0, "rates": [asdict(r) for r in found]}) + "\n")
    return 0


def sample_of(spark: SparkSession, settings: Settings, step: str | None) -> DataFrame:
    """The policy's sampled documents, of one step or all that the settings have.

    Raises:
        TableMissing: if none have been drawn.
    """
    pinned = _newest(spark, settings, "audit_samples")
    if pinned is None:
        raise TableMissing(
            "no documents have been drawn for reading", remedy="Run a quality_filter step with audit above 0: weir run"
        )
    steps = [step] if step is not None else [s.name for s in settings.decide]
    mine = (F.col("policy") == settings.policy) & F.col("step").isin(steps)
    return pinned.read(spark).where(mine)


def write_sample(spark: SparkSession, settings: Settings, step: str | None, output: Path, characters: int) -> int:
    """Write the sample for people to fill in, in the order step, rule, side, source; returns how many there are."""
    sample = sample_of(spark, settings, step)
    documents = _newest(spark, settings, "documents")
    if documents is None:
        raise TableMissing("there are no documents", remedy="Run: weir ingest")
    batches = [row[0] for row in sample.select("batch").distinct().collect()]
    texts = documents.read(spark).where(F.col("batch").isin(batches))
    beginning = F.substring("text", 1, characters).alias("text")
    rows = (
        sample.drop("batch", "documents_version", "run_id")
        .join(texts.select("doc_id", beginning), ["doc_id"])
        .orderBy("step", "side", "rule", "source", "doc_id")
        .collect()
    )
    with output.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            entry = {name: row[name] for name in (*KEY, "source", "value", "limit", "text")}
            stream.write(json.dumps({"verdict": None, **entry}, ensure_ascii=False) + "\n")
    return len(rows)


def read_verdicts(spark: SparkSession, settings: Settings, file: Path, judge: str) -> int:
    """Store the verdicts in a file; rows without one are passed over. The same file again adds nothing.

    Raises:
        UnreadableInput: if the file can't be read.
        InputContractError: for lines that are no verdicts, or are about other documents; nothing is stored then.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(f"verdicts '{file}' can't be read: {error}", remedy="Correct the path.") from None
    rows, problems = _parsed(lines, judge)
    known = {tuple(r[name] for name in KEY) for r in sample_of(spark, settings, None).select(*KEY).collect()}
    problems += [
        f"line {number}: {row['doc_id']} is not in the sample of step '{row['step']}', rule '{row['rule']}', "
        f"policy '{row['policy']}'"
        for number, row in rows
        if tuple(row[name] for name in KEY) not in known
    ]
    if problems:
        more = [f"and {len(problems) - 20:,} more"] if len(problems) > 20 else []
        raise InputContractError(
            f"{file} holds rows that are no verdicts on this sample:", [*problems[:20], *more],
            "Verdicts are good, bad or null; write the file anew with weir audit --output, and change nothing else.",
        )  # fmt: skip
    if not rows:
        return 0
    at = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    values = [{**row, "judged_at": at} for _, row in rows]
    frame = spark.createDataFrame([tuple(v[c] for c in VERDICTS.column_names) for v in values], VERDICTS.struct_type())
    ref = TableRef.in_warehouse(settings.warehouse, "verdicts")
    ensure_table(spark, "verdicts", ref, VERDICTS)
    content = json.dumps([row for _, row in rows], sort_keys=True)
    transaction = f"audit/{hashlib.sha256(content.encode()).hexdigest()[:32]}"
    write_table(spark, frame, "verdicts", ref, VERDICTS, transaction=transaction, ordinal=1, metadata={"job": "audit"})
    return len(rows)


def _parsed(lines: Sequence[str], judge: str) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
    rows, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry: Mapping[str, Any] = json.loads(line)
            row = {name: str(entry[name]) for name in (*KEY, "source")}
            verdict = entry["verdict"]
        except (ValueError, KeyError, TypeError) as error:
            problems.append(f"line {number}: {type(error).__name__}: {error}")
            continue
        if verdict in ("good", "bad"):
            rows.append((number, {**row, "verdict": verdict, "judge": str(entry.get("judge") or judge)}))
        elif verdict is not None:
            problems.append(f"line {number}: the verdict of {row['doc_id']} is {verdict!r}")
    return rows, problems


def rates(spark: SparkSession, settings: Settings, step: str | None) -> list[Rate]:
    """Shares of wrong decisions by step, rule and source; of a judge's verdicts on a document the newest counts.

    Where several judges read a document, each verdict counts. Only documents of the present sample count.
    """
    pinned = _newest(spark, settings, "verdicts")
    if pinned is None:
        return []
    newest = Window.partitionBy(*KEY, "judge").orderBy(F.col("judged_at").desc(), "verdict")
    sample = sample_of(spark, settings, step).select(*KEY)
    verdicts = pinned.read(spark).join(sample, list(KEY)).withColumn("place", F.row_number().over(newest))
    wrong = F.when(F.col("side") == "dropped", F.col("verdict") == "good").otherwise(F.col("verdict") == "bad")
    counted = (
        verdicts.where("place = 1")
        .groupBy("step", "side", "rule", "source")
        .agg(F.count(F.lit(1)).alias("judged"), F.sum(wrong.cast("bigint")).alias("wrong"))
        .collect()
    )
    sizes = _sizes(spark, settings)
    groups: dict[tuple[str, str, str], list[Any]] = {}
    for row in counted:
        groups.setdefault((row["step"], row["side"], row["rule"]), []).append(row)
    found = []
    for (name, side, rule), rows in sorted(groups.items()):
        judged, hits = sum(r["judged"] for r in rows), sum(r["wrong"] for r in rows)
        weights = [sizes.get((name, rule, r["source"]), 0) if side == "dropped" else 0 for r in rows]
        weighted = (
            sum(w * r["wrong"] / r["judged"] for w, r in zip(weights, rows, strict=True)) / sum(weights)
            if sum(weights)
            else None
        )
        found.append(Rate(name, rule, side, ALL, judged, hits, hits / judged, *wilson(hits, judged), weighted))
        for r in sorted(rows, key=lambda r: str(r["source"])):
            share = r["wrong"] / r["judged"]
            found.append(
                Rate(name, rule, side, r["source"], r["judged"], r["wrong"], share, *wilson(r["wrong"], r["judged"]))
            )
    return found


def _sizes(spark: SparkSession, settings: Settings) -> dict[tuple[str, str, str], int]:
    """How many documents each rule drops, by (step, rule, source)."""
    pinned = _newest(spark, settings, "decisions")
    if pinned is None:
        return {}
    rules = pinned.read(spark).where(F.col("policy") == settings.policy).select(
        "step", "source", F.explode("failing.rule").alias("rule")
    )  # fmt: skip
    rows = rules.groupBy("step", "rule", "source").count().collect()
    return {(r["step"], r["rule"], r["source"]): r["count"] for r in rows}


def _newest(spark: SparkSession, settings: Settings, name: str) -> Pinned | None:
    ref = TableRef.in_warehouse(settings.warehouse, name)
    version = latest_version(spark, ref)
    return None if version is None else Pinned(name, ref, version)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
