"""One run of the demo, on a local session: what it wrote is what a cluster and a Connect server must write too."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.helpers import HOME, SMALL_SPARK, Done, weir

DOCUMENTS = 1000


@dataclass(frozen=True)
class Demo:
    """A folder with the demo's corpus and warehouse, and how its process ended."""

    folder: Path
    done: Done

    @property
    def warehouse(self) -> Path:
        """Where its tables are."""
        return self.folder / "warehouse"

    def settings(self, home: Path, **spark: object) -> list[str]:
        """Arguments that run the demo's pipeline on its corpus into a warehouse of one's own."""
        corpus = self.folder / "corpus"
        lists = {"blocked_domain_lists": "blocked_domains.txt", "blocked_id_lists": "takedown_ids.txt"}
        assignments: dict[str, object] = {
            "warehouse": str(home / "warehouse"),
            "spark": {**SMALL_SPARK, **spark},
            **{f"decide.0.eligibility.{name}": [str(corpus / "lists" / file)] for name, file in lists.items()},
            **{f"ingest.{s}.paths": [str(corpus / s)] for s in ("reference", "books", "code", "forum", "web")},
        }
        given = [f"--set={name}={json.dumps(value)}" for name, value in assignments.items()]
        return ["--config", str(HOME / "conf" / "demo.yaml"), *given]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """``weir demo`` with 1,000 records."""
    folder = tmp_path_factory.mktemp("demo")
    return Demo(folder, weir("demo", "--documents", str(DOCUMENTS), "--folder", folder, "--json"))
