"""The one pass over the text: every annotator's kernel on the same Arrow batch, text read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from udfs import model_files
from udfs.annotators.base import AnnotatorSettings
from udfs.annotators.registry import ANNOTATORS

CARRIED = ("doc_id", "source", "text_sha256", "batch")
"""Columns that go through unchanged, so that an annotation can be joined and be known as stale."""


def one_pass(
    wanted: Sequence[tuple[str, AnnotatorSettings]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: batches of the carried columns and text, to the carried columns and a struct per annotator.

    Kernels are opened once per task. Each struct ends in ``version``, the annotator's identity. Model files are hashed
    here, and workers take only those with these hashes.

    Args:
        wanted: Column name and settings of each annotator.

    Raises:
        SettingsError: for models that can't be used as the settings say.
    """
    identities = {name: ANNOTATORS[settings.kind].identity(settings) for name, settings in wanted}
    resolved = [(name, ANNOTATORS[settings.kind].resolve(settings)) for name, settings in wanted]
    hashes = {path: model_files.sha256_of(path) for path in files_of(resolved)}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model_files.expect(hashes)
        kernels = [(name, ANNOTATORS[settings.kind].open(settings)) for name, settings in resolved]
        for batch in batches:
            texts = batch.column("text")
            columns = [batch.column(name) for name in CARRIED]
            names = list(CARRIED)
            for name, kernel in kernels:
                columns.append(_with_version(kernel(texts), identities[name]))
                names.append(name)
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return run


def files_of(resolved: Sequence[tuple[str, AnnotatorSettings]]) -> list[str]:
    """The files that annotators with resolved settings read on the workers."""
    return sorted({path for _, settings in resolved for path in ANNOTATORS[settings.kind].files(settings)})


def output_schema(wanted: Sequence[tuple[str, AnnotatorSettings]]) -> str:
    """The pass's output as Spark DDL."""
    carried = "doc_id STRING, source STRING, text_sha256 BINARY, batch STRING"
    return ", ".join([carried, *(f"`{name}` {ANNOTATORS[settings.kind].sql_type()}" for name, settings in wanted)])


def _with_version(values: pa.StructArray, identity: str) -> pa.StructArray:
    arrays = [values.field(i) for i in range(values.type.num_fields)]
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    version = pa.repeat(pa.scalar(identity), len(values))
    return pa.StructArray.from_arrays([*arrays, version], names=[*names, "version"])
