"""Base classes of our metrics and expectations for Great Expectations.

The library keeps metrics, expectations and renderers in process-wide registries under their bare names.
Loading a module twice (a notebook reload, one file under two import names) makes it log that it overwrites;
another package's class of the same name would replace a gate's check, with no more than a log line. So each
class claims its name first: a second load of the same file replaces the first one quietly, and anybody else's
class is refused.

Importing this module imports Great Expectations, which takes seconds.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import Any, ClassVar

from great_expectations.expectations import registry
from great_expectations.expectations.expectation import (
    BatchExpectation,
    render_suite_parameter_string,
)
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.render import LegacyRendererType, RenderedStringTemplateContent
from great_expectations.render.renderer.renderer import renderer
from great_expectations.util import camel_to_snake


def _source_file(defined: type) -> str | None:
    module = sys.modules.get(defined.__module__)
    return getattr(module, "__file__", None)


def _refuse_another(name: str, registered: type, claimant: type) -> None:
    """Raises unless ``registered`` is an earlier load of ``claimant``."""
    if registered.__qualname__ != claimant.__qualname__ or _source_file(registered) != _source_file(claimant):
        raise ValueError(
            f"{name} is registered by {registered.__module__}.{registered.__qualname__} already, so "
            f"{claimant.__module__}.{claimant.__qualname__} can't take the name"
        )


class WeirMetric(TableMetricProvider):
    """A metric over a whole Spark frame, whose name begins with ``weir.``."""

    @classmethod
    def _register_metric_functions(cls) -> None:
        name = getattr(cls, "metric_name", None)
        if name is None:
            return
        if not name.startswith("weir."):
            raise ValueError(f"the metric {name!r} must begin with 'weir.': metric names are shared by a process")
        for registered_name in (name, f"{name}.aggregate_fn"):
            registered = registry._registered_metrics.get(registered_name)
            if registered is not None:
                for provider, _ in registered["providers"].values():
                    _refuse_another(registered_name, provider, cls)
                del registry._registered_metrics[registered_name]
        super()._register_metric_functions()


class WeirExpectation(BatchExpectation):
    """An expectation about a whole Spark frame, with a sentence for Data Docs."""

    # Great Expectations hands a metric only those arguments that stand here and in the metric's value_keys;
    # one that is missing in either arrives as None.
    success_keys: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = camel_to_snake(cls.__name__)
        registered = registry._registered_expectations.get(name)
        if registered is not None:
            _refuse_another(name, registered, cls)
            del registry._registered_expectations[name]
        registry._registered_renderers.pop(name, None)

    @classmethod
    @abstractmethod
    def _sentence(cls, arguments: dict[str, Any]) -> str:
        """What is expected, from the keyword arguments."""

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    @render_suite_parameter_string
    def _prescriptive_renderer(
        cls,
        configuration: Any = None,
        result: Any = None,
        runtime_configuration: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[RenderedStringTemplateContent]:
        """One sentence, handed over as a parameter: ``$`` in a source's name would read as a variable."""
        styling = (runtime_configuration or {}).get("styling")
        return [
            RenderedStringTemplateContent(
                content_block_type="string_template",
                string_template={
                    "template": "$sentence",
                    "params": {"sentence": cls._sentence(dict(configuration.kwargs))},
                    "styling": styling,
                },
            )
        ]
