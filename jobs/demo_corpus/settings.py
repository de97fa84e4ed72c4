"""What a caller may set about the demo corpus."""

from __future__ import annotations

from dataclasses import dataclass, fields

from jobs.runtime.errors import SettingsError, WeirError


class DemoSettingsError(SettingsError):
    """The demo corpus can't be made as asked for. Lists every problem."""


class DemoFolderError(WeirError):
    """The folder for the demo corpus holds files already, which a new corpus would mix with."""

    exit_code = 2


LEAST_DOCUMENTS, MOST_DOCUMENTS = 1_000, 100_000_000
LEAST_DOCUMENTS_PER_FILE = 100
LEAST_MEAN_BYTES, MOST_MEAN_BYTES = 600, 100_000


@dataclass(frozen=True)
class DemoSettings:
    """The knobs of the demo corpus. Shares are of all records; a kind whose share is 0 does not occur.

    Every kind with a share above 0 has a small minimum, so that 1,000 documents hold each of them.

    Attributes:
        files_per_source: files of each source, and the most processes that can work at once.
        mean_bytes: mean UTF-8 bytes of an ordinary text over all sources; None for the sources' own, about 2,100. All lengths
            scale by one factor. 600 to 100,000.
        exact_copy_share: records in groups of exact copies, originals included.
        big_copy_share: records in the one large group of exact copies.
        near_copy_share: records in clusters of near-copies, originals included.
        template_share: letters made from a template, with a pairwise similarity of about 0.5.
        template_families: how many templates there are.
        near_page_share: pages that are all nearly the same page, with pairwise similarities of at least 0.84.
        junk_share, empty_share, broken_share, odd_share: records of these kinds.
        takedown_share: records on the list of blocked domains, and as many on the list of ids.
        contaminated_share: documents that hold an item of the evaluation set.
        evaluation_items: items of that set.
    """

    files_per_source: int = 4
    mean_bytes: int | None = None
    exact_copy_share: float = 0.04
    big_copy_share: float = 0.002
    near_copy_share: float = 0.03
    template_share: float = 0.01
    template_families: int = 3
    near_page_share: float = 0.0
    junk_share: float = 0.006
    empty_share: float = 0.003
    broken_share: float = 0.003
    odd_share: float = 0.001
    takedown_share: float = 0.001
    contaminated_share: float = 0.002
    evaluation_items: int = 40

    def __post_init__(self) -> None:
        problems = []
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name.endswith("_share") and not 0 <= value <= 0.9:
                problems.append(f"{item.name} is {value}, but must be between 0 and 0.9")
        for name, least in (("files_per_source", 1), ("template_families", 1), ("evaluation_items", 3)):
            if getattr(self, name) < least:
                problems.append(f"{name} is {getattr(self, name)}, but must be at least {least}")
        if self.mean_bytes is not None and not LEAST_MEAN_BYTES <= self.mean_bytes <= MOST_MEAN_BYTES:
            problems.append(
                f"mean_bytes is {self.mean_bytes}, but must be between {LEAST_MEAN_BYTES} and {MOST_MEAN_BYTES}"
            )
        if problems:
            raise DemoSettingsError(problems)
