"""The contracts of all tables. What each column means is said once, here, and becomes the table's own comments."""

from __future__ import annotations

from schemas.contract import Column, Contract

NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"

_BATCH = Column("batch", "STRING", "What arrived together (a day, a delivery): increments and back-fills go by it")
_DOC_ID = Column("doc_id", "STRING", "Identity of the document, unique over the table")
_SOURCE = Column("source", "STRING", "Name of the source, as in the settings")

DOCUMENTS = Contract(
    name="documents",
    version=1,
    comment="Every document that was taken in, unchanged; nothing rewrites or deletes text",
    key=("doc_id",),
    partitioned_by=("batch",),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("bytes", "BIGINT", "Length of the text in UTF-8 bytes"),
        Column("characters", "BIGINT", "Length of the text in Unicode code points"),
        Column("text_sha256", "BINARY", "SHA-256 of the text's UTF-8 bytes (32 bytes)"),
        Column("url", "STRING", "Where the document was found", nullable=True),
        Column("language", "STRING", "Language as the supplier gave it; not detected", nullable=True),
        Column(
            "fetched_at",
            "TIMESTAMP",
            "When it was fetched, UTC; a stamp without an offset was read as UTC",
            nullable=True,
        ),
        Column("origin", "STRING", "'human', or 'generated'", nullable=True),
        Column("generator", "STRING", "What generated the text, where it was generated", nullable=True),
        Column("generation", "INT", "How many generations from human text; 0 is human", nullable=True),
        Column(
            "attributes",
            "MAP<STRING, STRING>",
            "All other fields of the record, as given (JSON for what is not a string)",
        ),
        Column("notes", "ARRAY<STRING>", "What was repaired on the way in: bad_unicode, bad_timestamp ..."),
        Column("file", "STRING", "URI of the file the record was read from"),
        Column("record", "BIGINT", "Line (from 1) or row of the record in its file"),
        Column("ingest_run", "STRING", "Run id that took it in"),
        Column("arrival", "BIGINT", "Rank of its arrival: whatever was taken in before has a smaller one"),
        _BATCH,
        Column("text", "STRING", "The text, exactly as given but for repairs named in notes"),
    ),
    checks={
        "lengths": "bytes >= characters AND characters >= 0",
        "hash": "length(text_sha256) = 32",
        "id": "doc_id <> ''",
    },
    statistics=("doc_id", "source", "bytes", "characters", "ingest_run", "arrival"),
)

REJECTS = Contract(
    name="rejects",
    version=1,
    comment="Records that could not become documents, with the raw record and the reason",
    key=("run_id", "file", "record", "part"),
    columns=(
        Column("run_id", "STRING", "Ingest run that rejected it"),
        Column("file", "STRING", "URI of the file"),
        Column("record", "BIGINT", "Line (from 1) or row of the record in its file"),
        Column("part", "INT", "0, or the number of the document within the record where it holds several"),
        _SOURCE,
        Column("doc_id", "STRING", "The record's id, where it has a readable one", nullable=True),
        Column("reason", "STRING", "bad_json, text_missing, text_not_string, text_too_long, bad_encoding ..."),
        Column("detail", "STRING", "What exactly was wrong, for a person"),
        Column("raw", "STRING", "The record as read, cut to the setting ingest raw_characters"),
        Column("raw_sha256", "BINARY", "SHA-256 of the whole raw record"),
        _BATCH,
    ),
    checks={"reason": "reason <> ''"},
    statistics=("run_id", "file", "record", "source", "reason"),
)

ANNOTATIONS = Contract(
    name="annotations",
    version=1,
    comment="What annotators computed, a struct per annotator; what one pass computes stands in one table",
    key=("doc_id",),
    partitioned_by=("batch",),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("text_sha256", "BINARY", "SHA-256 of the text that was annotated, so that stale rows are noticed"),
        _BATCH,
    ),
    checks={"hash": "length(text_sha256) = 32"},
    statistics=("doc_id", "source"),
    open_ended=True,
)

DECISIONS = Contract(
    name="decisions",
    version=1,
    comment="One row per document that a step drops, with the reason and the evidence",
    key=("policy", "step", "doc_id"),
    partitioned_by=("policy", "step", "batch"),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("reason", "STRING", "Why it is dropped: empty, exact_duplicate, a rule's name ..."),
        Column(
            "failing",
            "ARRAY<STRUCT<rule: STRING, value: STRING, limit: STRING>>",
            "All rules that the document fails, with its values and the limits",
        ),
        Column("kept_id", "STRING", "For duplicates: the document that is kept instead", nullable=True),
        Column("kept_in", "STRING", "Table that kept_id stands in; NULL: this warehouse's documents", nullable=True),
        Column("similarity", "DOUBLE", "For duplicates: how similar it is to kept_id, 0 to 1", nullable=True),
        Column("method", "STRING", "How the evidence was obtained: rule, list, sha256:norm_v1, jaccard ..."),
        Column("proven", "BOOLEAN", "Whether the evidence was computed, not estimated"),
        Column(
            "group_size",
            "BIGINT",
            "For duplicates: documents in the group, the kept one included",
            nullable=True,
        ),
        Column("shared_bands", "INT", "For near-duplicates: bands of the signature shared with kept_id", nullable=True),
        Column("documents_version", "BIGINT", "Version of the documents table that the step decided on"),
        Column("run_id", "STRING", "Run that decided"),
        Column("policy", "STRING", "Set of decisions that this row belongs to"),
        Column("step", "STRING", "Name of the step in the settings' decide list"),
        _BATCH,
    ),
    checks={
        "reason": "reason <> ''",
        "similarity": "similarity IS NULL OR (similarity >= 0 AND similarity <= 1)",
        "twin": "kept_id IS NULL OR kept_in IS NOT NULL OR kept_id <> doc_id",
    },
    statistics=("doc_id", "source", "reason", "kept_id"),
)

SIGNATURE = "STRUCT<shingles: BIGINT, fingerprint: BINARY, bands: ARRAY<BIGINT>, sketch: BINARY>"

NEAR_DEDUP_INDEX = Contract(
    name="near_dedup_index",
    version=1,
    comment="Signatures of the documents that a near_dedup step kept: what later arrivals are compared with",
    key=("policy", "step", "doc_id"),
    partitioned_by=("policy", "step", "batch"),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("bytes", "BIGINT", "Length of the text in UTF-8 bytes"),
        Column("text_sha256", "BINARY", "SHA-256 of the text that was signed"),
        Column("signature", "STRING", "How the signatures were made; only the same can be compared"),
        Column("minhash", SIGNATURE, "The signature: shingles, fingerprint of the words, band keys, sketch"),
        Column("documents_version", "BIGINT", "Version of the documents table that the step decided on"),
        Column("run_id", "STRING", "Run that kept it"),
        Column("policy", "STRING", "Set of decisions"),
        Column("step", "STRING", "Name of the step in the settings' decide list"),
        _BATCH,
    ),
    checks={"hash": "length(text_sha256) = 32"},
    statistics=("doc_id", "source"),
)

SELECTION = Contract(
    name="selection",
    version=1,
    comment="Every document with its fate under a policy",
    key=("policy", "doc_id"),
    partitioned_by=("policy", "batch"),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("tokens", "BIGINT", "Tokens by the tokens annotator; NULL where it did not run", nullable=True),
        Column("characters", "BIGINT", "Length of the text in code points"),
        Column("bytes", "BIGINT", "Length of the text in UTF-8 bytes"),
        Column("language", "STRING", "Language as the supplier gave it", nullable=True),
        Column("kept", "BOOLEAN", "Whether the document goes on"),
        Column("step", "STRING", "The first step that drops it", nullable=True),
        Column("reason", "STRING", "That step's reason", nullable=True),
        Column("kept_id", "STRING", "For duplicates: the document kept instead", nullable=True),
        Column("kept_in", "STRING", "Table that kept_id stands in; NULL: this warehouse's documents", nullable=True),
        Column("group_size", "BIGINT", "Size of its duplicate group, itself included; 1 if it has no duplicate"),
        Column("documents_version", "BIGINT", "Version of the documents table that was decided on"),
        Column("run_id", "STRING", "Run that wrote the row"),
        Column("policy", "STRING", "Set of decisions"),
        _BATCH,
    ),
    checks={
        "fate": "kept = (step IS NULL) AND (step IS NULL) = (reason IS NULL)",
        "group": "group_size >= 1",
        "tokens": "tokens IS NULL OR tokens >= 0",
    },
    statistics=("doc_id", "source", "tokens", "step", "reason"),
)

_STEP_COLUMNS = (
    Column("documents_version", "BIGINT", "Version of the documents table that the step decided on"),
    Column("run_id", "STRING", "Run that wrote the row"),
    Column("policy", "STRING", "Set of decisions"),
    Column("step", "STRING", "Name of the step in the settings' decide list"),
)

DRAWS = Contract(
    name="draws",
    version=1,
    comment="Documents that a rule keeps with a probability: the inverse of it is their weight",
    key=("policy", "step", "rule", "doc_id"),
    partitioned_by=("policy", "step", "batch"),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("rule", "STRING", "Name of the rule"),
        Column("probability", "DOUBLE", "With which the document is kept"),
        Column("draw", "DOUBLE", "Its draw, from 0 to just below 1: kept if below the probability"),
        *_STEP_COLUMNS,
        _BATCH,
    ),
    checks={"probability": "probability >= 0 AND probability <= 1", "draw": "draw >= 0 AND draw < 1"},
    statistics=("doc_id", "source"),
)

AUDIT_SAMPLES = Contract(
    name="audit_samples",
    version=1,
    comment="Documents for people to read: a fixed number by rule, source and side, drawn by hash",
    key=("policy", "step", "rule", "side", "doc_id"),
    partitioned_by=("policy", "step"),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("rule", "STRING", "The rule that drops the document; empty for kept documents, which pass all"),
        Column("side", "STRING", "dropped or kept"),
        Column("value", "STRING", "For dropped documents: the values that the rule looked at, as JSON", nullable=True),
        Column("limit", "STRING", "For dropped documents: what the rule asks for", nullable=True),
        *_STEP_COLUMNS,
        _BATCH,
    ),
    checks={"side": "side IN ('dropped', 'kept')"},
    statistics=("doc_id", "source", "rule", "side"),
)

VERDICTS = Contract(
    name="verdicts",
    version=1,
    comment="What people who read sampled documents say of them",
    key=("policy", "step", "rule", "side", "doc_id", "judge"),
    partitioned_by=("policy", "step"),
    columns=(
        _DOC_ID,
        _SOURCE,
        Column("rule", "STRING", "As in audit_samples"),
        Column("side", "STRING", "dropped or kept"),
        Column("verdict", "STRING", "good: belongs into the corpus; bad: does not"),
        Column("judge", "STRING", "Who says so"),
        Column("judged_at", "TIMESTAMP", "UTC"),
        Column("policy", "STRING", "Set of decisions"),
        Column("step", "STRING", "Name of the step in the settings' decide list"),
    ),
    checks={"verdict": "verdict IN ('good', 'bad')", "side": "side IN ('dropped', 'kept')"},
    statistics=("doc_id", "source", "rule", "side"),
)

_COUNT = "STRUCT<source: STRING, outcome: STRING, reason: STRING, documents: BIGINT, tokens: BIGINT, bytes: BIGINT>"

RUNS = Contract(
    name="runs",
    version=1,
    comment="One row per job and run: what went in, what came out, under which settings, how long it took",
    key=("run_id", "job", "step"),
    columns=(
        Column("run_id", "STRING", "Identity of the run; the same id again is a no-op"),
        Column("job", "STRING", "Name of the job"),
        Column("step", "STRING", "Name of the decide step; empty for other jobs"),
        Column("policy", "STRING", "Set of decisions"),
        Column("status", "STRING", "started, done or failed"),
        Column("code_version", "STRING", "Version of Corpus Weir"),
        Column("settings", "STRING", "The settings that this job depends on, as JSON"),
        Column("settings_sha256", "STRING", "SHA-256 of these settings"),
        Column("inputs", "ARRAY<STRUCT<name: STRING, version: BIGINT>>", "Input tables and the versions read"),
        Column("outputs", "ARRAY<STRUCT<name: STRING, version: BIGINT, rows: BIGINT>>", "Tables written"),
        Column("counts", f"ARRAY<{_COUNT}>", "Documents, tokens and bytes by source, outcome and reason"),
        Column("documents_in", "BIGINT", "Documents or records that went in", nullable=True),
        Column("documents_kept", "BIGINT", "Of these, kept", nullable=True),
        Column("documents_dropped", "BIGINT", "Of these, dropped", nullable=True),
        Column("documents_quarantined", "BIGINT", "Of these, quarantined in rejects", nullable=True),
        Column(
            "digest",
            "STRING",
            "SHA-256 over the sorted ids and hashes of the output, whatever its layout",
            nullable=True,
        ),
        Column(
            "notes",
            "MAP<STRING, STRING>",
            "Whatever else the job has to say: repairs, skipped files, warnings",
        ),
        Column("seconds", "DOUBLE", "Wall-clock seconds", nullable=True),
        Column("bytes", "BIGINT", "Bytes of text that went in", nullable=True),
        Column("cores", "INT", "Cores that the session had", nullable=True),
        Column("documents_per_core_second", "DOUBLE", "Documents in per core and second", nullable=True),
        Column("gb_per_core_hour", "DOUBLE", "10^9 bytes of text in per core and hour", nullable=True),
        Column("started_at", "TIMESTAMP", "UTC"),
        Column("finished_at", "TIMESTAMP", "UTC", nullable=True),
        Column("error", "STRING", "Why it failed", nullable=True),
        Column("exit_code", "INT", "What the process ended with", nullable=True),
    ),
    checks={"status": "status IN ('started', 'done', 'failed')"},
)

VALIDATIONS = Contract(
    name="validations",
    version=1,
    comment="One row per expectation of a gate: what was expected, what was observed, whether it blocks",
    key=("run_id", "suite", "position"),
    columns=(
        Column("run_id", "STRING", "Run id of the validate job"),
        Column("policy", "STRING", "Set of decisions that was validated"),
        Column("suite", "STRING", "integrity, coverage ..."),
        Column("position", "INT", "Number of the expectation within its suite"),
        Column("expectation", "STRING", "Type of the expectation"),
        Column("description", "STRING", "What is expected, in words"),
        Column("table_name", "STRING", "Table that was looked at"),
        Column("table_version", "BIGINT", "Version of it"),
        Column("severity", "STRING", "critical, warning or info"),
        Column("success", "BOOLEAN", "Whether it was met"),
        Column("errored", "BOOLEAN", "Whether it could not be evaluated; blocks like a failure"),
        Column("blocks", "BOOLEAN", "Whether it stops a release"),
        Column("observed", "STRING", "What was observed", nullable=True),
        Column("limit", "STRING", "The expectation's parameters, as JSON", nullable=True),
        Column("details", "STRING", "Per-slice violations and the like, as JSON", nullable=True),
        Column("exception", "STRING", "Why it could not be evaluated", nullable=True),
        Column("validated_at", "TIMESTAMP", "UTC"),
    ),
    checks={"severity": "severity IN ('critical', 'warning', 'info')"},
)

CONTRACTS: dict[str, Contract] = {
    contract.name: contract
    for contract in (
        DOCUMENTS,
        REJECTS,
        ANNOTATIONS,
        DECISIONS,
        NEAR_DEDUP_INDEX,
        DRAWS,
        AUDIT_SAMPLES,
        VERDICTS,
        SELECTION,
        RUNS,
        VALIDATIONS,
    )
}
"""All contracts by table name. Annotation tables of later passes (``annotations_*``) share the annotations contract."""


def contract_of(table: str) -> Contract:
    """The contract that a table follows, by its name in the warehouse.

    Raises:
        KeyError: for a name that no contract covers.
    """
    if table.startswith("annotations_"):
        return ANNOTATIONS
    return CONTRACTS[table]
