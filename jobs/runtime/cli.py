"""The command line: ``weir run``, ``weir JOB`` and the commands that look at things.

A user's mistake ends in one message and its exit code, never in a traceback. With ``--json`` the last line on standard
output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import __version__
from jobs.runtime.errors import GateFailed, PackageShadowed, SettingsError, WeirError

if TYPE_CHECKING:
    from jobs.runtime.job import Result
    from jobs.runtime.layers import Resolved
    from jobs.settings import Settings

PACKAGES = ("udfs", "schemas", "expectations", "conf")
DEFAULT_FILE = "weir.yaml"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``weir``; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _dispatch(arguments), wants_json="--json" in arguments)


def run_script(job: str) -> int:
    """Entry point of ``spark-submit jobs/JOB.py``: the same as ``weir JOB``."""
    return main([job, *sys.argv[1:]])


def guarded(action: Callable[[], int], wants_json: bool = False) -> int:
    """Run an action; turn errors into a message on standard error, JSON where asked for, and an exit code."""
    try:
        check_packages()
        return action()
    except WeirError as error:
        message, code = str(error), error.exit_code
    except KeyboardInterrupt:
        message, code = "interrupted; run it again with the same run id to go on", 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read our output has left: nothing more to say
        return 0
    except Exception as error:
        from jobs.runtime.failures import translate

        known = translate(error, "Spark")
        if isinstance(known, WeirError):  # thrown outside of a job: while Spark starts, or by weir show
            message, code = str(known), known.exit_code
        else:
            message, code = _unexpected(error), 1
    sys.stderr.write(f"weir: {message}\n")
    sys.stderr.flush()
    if wants_json:
        _print_json({"status": "failed", "exit_code": code, "error": message})
    return code


def check_packages() -> None:
    """Refuse to run if another distribution's package shadows one of ours: its functions would be called.

    Raises:
        PackageShadowed: naming the package, where it was found, and the remedy.
    """
    import importlib

    home = Path(__file__).resolve().parents[2]
    for name in PACKAGES:
        module = importlib.import_module(name)
        found = Path(str(module.__file__)).resolve().parents[1]
        if found != home:
            raise PackageShadowed(
                f"the package '{name}' comes from {found}, not from corpus-weir ({home}). "
                "Put corpus-weir first on PYTHONPATH, run from another folder, or remove the other package."
            )


def load_settings(files: Sequence[str], assignments: Sequence[str]) -> Resolved[Settings]:
    """All layers: defaults < conf/base.yaml < files < environment < assignments.

    Raises:
        SettingsError: listing every problem.
    """
    import importlib.resources

    from jobs.runtime.layers import Layer, assignment_layers, environment_layers, parse_yaml, read_yaml, resolve
    from jobs.settings import Settings

    base = (importlib.resources.files("conf") / "base.yaml").read_text(encoding="utf-8")
    layers = [Layer("conf/base.yaml", parse_yaml(base, "conf/base.yaml"))]
    layers += [read_yaml(Path(file)) for file in files]
    layers += environment_layers(os.environ)
    layers += assignment_layers(assignments)
    return resolve(Settings, layers)


def _dispatch(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if not getattr(options, "handler", None):
        parser.print_help()
        return 2
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING, format="%(asctime)s %(name)s %(message)s"
    )
    for noisy in ("py4j", "pyspark", "numba", "matplotlib", "great_expectations"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    handler: Callable[[argparse.Namespace], int] = options.handler
    return handler(options)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        """Usage errors are settings errors: exit 2 in one line."""
        raise SettingsError(f"{message}; see: {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    from jobs.registry import JOBS

    parser = _Parser(
        prog="weir",
        description="Turns raw text into a pre-training mix that a team can defend: jobs over Delta tables.",
        epilog="Exit codes: 0 done, 1 unexpected, 2 settings, 3 gate failed, 4 input broken, 5 infeasible, 75 retry later.",
    )
    parser.add_argument("--version", action="version", version=f"corpus-weir {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    init = commands.add_parser("init", help="look at a folder of data and write a commented settings file for it")
    init.add_argument("folder", help="folder with the data")
    init.add_argument("--output", default=DEFAULT_FILE, help=f"file to write (default: {DEFAULT_FILE})")
    init.add_argument("--warehouse", default="./warehouse", help="where the tables will be (default: ./warehouse)")
    init.add_argument("--force", action="store_true", help="overwrite an existing file")
    _common(init, _init)

    run = commands.add_parser("run", help="the whole pipeline of a settings file")
    _settings_arguments(run)
    _run_arguments(run)
    _common(run, _run)

    for job in JOBS.values():
        command = commands.add_parser(job.name, help=job.summary)
        _settings_arguments(command)
        _run_arguments(command)
        command.add_argument(
            "--step", help="for deciding jobs: the step's name; for train-classifier: the model's (default: all)"
        )
        if job.name == "quality-filter":
            command.add_argument(
                "--preview", action="store_true", help="show what each threshold would keep; write nothing"
            )
            command.add_argument(
                "--sample", type=int, metavar="N", help="with --preview: documents to look at (default: 100,000)"
            )
            command.add_argument(
                "--budget-tokens", type=int, metavar="N", help="with --preview: tokens that training will read"
            )
        _common(command, _job)
        command.set_defaults(job=job.name)

    settings = commands.add_parser("settings", help="the resolved settings, with where each value came from")
    _settings_arguments(settings)
    settings.add_argument("--reference", choices=["yaml", "markdown"], help="print every setting that there is instead")
    _common(settings, _settings)

    runs = commands.add_parser("runs", help="history of runs as a table")
    _settings_arguments(runs)
    runs.add_argument("--run-id", help="only this run")
    runs.add_argument("--limit", type=int, default=30, help="newest records (default: 30)")
    runs.add_argument("--settings", action="store_true", help="also show the settings that each job depended on")
    _common(runs, _runs)

    show = commands.add_parser("show", help="rows of a table, readable")
    show.add_argument("table", help="documents, rejects, annotations, decisions, selection, runs, validations ...")
    _settings_arguments(show)
    show.add_argument("--where", help="SQL condition, for example \"reason = 'empty'\"")
    show.add_argument("--columns", help="comma-separated columns or expressions")
    show.add_argument("--limit", type=int, default=20, help="rows (default: 20)")
    show.add_argument("--at", type=int, help="version of the table (default: the newest)")
    _common(show, _show)

    explain = commands.add_parser("explain", help="why a document was dropped or kept, and what it was compared with")
    explain.add_argument("doc_id", help="id of the document")
    _settings_arguments(explain)
    explain.add_argument("--limit", type=int, default=20, help="candidates to show for a step (default: 20)")
    _common(explain, _explain)

    audit = commands.add_parser("audit", help="documents to read, and what readers' verdicts say of the rules")
    _settings_arguments(audit)
    audit.add_argument("--step", help="quality_filter step (default: all)")
    audit.add_argument("--output", metavar="FILE", help="write the sampled documents as JSONL, to be given verdicts")
    audit.add_argument("--read", metavar="FILE", help="read such a file with verdicts: good or bad")
    audit.add_argument("--judge", default="someone", help="whose verdicts they are (default: someone)")
    audit.add_argument("--characters", type=int, default=2000, help="of each text to write (default: 2000)")
    _common(audit, _audit)

    demo = commands.add_parser("demo-corpus", help="write a synthetic corpus with planted, known truth")
    demo.add_argument("folder", help="folder to write")
    demo.add_argument("--documents", type=int, help="how many documents (default: 10,000)")
    demo.add_argument("--megabytes", type=float, help="about how many megabytes, instead of --documents")
    demo.add_argument("--seed", type=int, default=0, help="same seed, same bytes")
    demo.add_argument("--files-per-source", type=int, default=4)
    demo.add_argument("--workers", type=int, default=1, help="processes")
    _common(demo, _demo_corpus)

    whole = commands.add_parser("demo", help="generate the demo corpus, run the pipeline on it, compare with the truth")
    whole.add_argument("--folder", default="demo", help="where it all goes (default: ./demo)")
    whole.add_argument("--documents", type=int, default=10_000, help="records to generate (default: 10,000)")
    whole.add_argument("--seed", type=int, default=0)
    _common(whole, _demo)
    return parser


def _common(parser: argparse.ArgumentParser, handler: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line on standard output")
    parser.add_argument("--verbose", action="store_true", help="also log what takes how long")
    parser.set_defaults(handler=handler)


def _settings_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", metavar="SETTINGS.yaml", help=f"settings files, later ones win (default: {DEFAULT_FILE})"
    )
    parser.add_argument("--config", action="append", default=[], metavar="FILE", help="the same, as an option")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=V", help="set one value, for example --set policy=strict"
    )


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run-id", help="identity of the run; the same id again is a no-op (default: made from the time)"
    )


def _resolved(options: argparse.Namespace) -> Resolved[Settings]:
    files = [*options.files, *options.config]
    if not files and Path(DEFAULT_FILE).is_file():
        files = [DEFAULT_FILE]
    return load_settings(files, options.set)


def _init(options: argparse.Namespace) -> int:
    from jobs.runtime.init import printable, write_settings

    found = write_settings(Path(options.folder), Path(options.output), options.warehouse, options.force)
    for source in found:
        sys.stdout.write(f"{source.name}: {source.files:,} {source.format} file(s), {source.bytes / 1e6:,.1f} MB\n")
        for sentence in source.warnings:
            sys.stdout.write(f"  note: {printable(sentence)}\n")
    for sentence in dict.fromkeys(sentence for source in found for sentence in source.beside):
        sys.stdout.write(f"not taken in: {printable(sentence)}\n")
    sys.stdout.write(f"wrote {options.output}; look through it, then: weir run {options.output}\n")
    if options.json:
        _print_json({"status": "done", "exit_code": 0, "file": options.output, "sources": [s.name for s in found]})
    return 0


def _run(options: argparse.Namespace) -> int:
    from jobs.registry import pipeline

    resolved = _resolved(options)
    return _execute(options, resolved, list(pipeline(resolved.settings)), funnel=True)


def _job(options: argparse.Namespace) -> int:
    from jobs.registry import JOBS

    resolved = _resolved(options)
    job = JOBS[options.job]
    steps = list(job.steps(resolved.settings))
    if options.step is not None:
        if options.step not in steps:
            raise SettingsError(
                f"{job.name} has no step '{options.step}' in the settings; "
                f"it has: {', '.join(filter(None, steps)) or 'none'}"
            )
        steps = [options.step]
    if not steps:
        where = (
            "'train' names no classifier"
            if job.name == "train-classifier"
            else f"'decide' has no {job.record_name} step"
        )
        raise SettingsError(f"the setting {where}, so there is nothing to do")
    if getattr(options, "preview", False):
        return _preview(options, resolved.settings, steps)
    if getattr(options, "sample", None) is not None or getattr(options, "budget_tokens", None) is not None:
        raise SettingsError("--sample and --budget-tokens go with --preview")
    return _execute(options, resolved, [(job, step) for step in steps], funnel=False)


def _preview(options: argparse.Namespace, settings: Settings, steps: Sequence[str]) -> int:
    from jobs.preview import SAMPLE, PreviewOptions, print_previews

    wanted = PreviewOptions(SAMPLE if options.sample is None else options.sample, options.budget_tokens)
    return print_previews(settings, steps, wanted, options.json)


def _execute(options: argparse.Namespace, resolved: Resolved[Settings], plan: list[Any], funnel: bool) -> int:
    from jobs.runtime.funnel import print_funnel
    from jobs.runtime.job import run_job
    from jobs.runtime.runs import check_run_id, new_run_id
    from jobs.runtime.session import get_session, stop_own_session

    run_id = check_run_id(options.run_id or os.environ.get("WEIR_RUN_ID") or new_run_id())
    settings = resolved.settings
    results: list[Result] = []
    spark = get_session(settings.spark)
    try:
        for job, step in plan:
            results.append(run_job(spark, job, settings, run_id, step))
            if results[-1].blocked or results[-1].record.exit_code == GateFailed.exit_code:
                break
    finally:
        stop_own_session(spark)
    blocked = next((r.blocked or r.record.error for r in results if r.record.exit_code == GateFailed.exit_code), None)
    if funnel:
        print_funnel([r.record for r in results])
    code = GateFailed.exit_code if blocked else 0
    if all(r.already_done for r in results):
        sys.stderr.write(f"run {run_id} was already done; nothing was written\n")
    if blocked:
        sys.stderr.write(f"weir: gate failed: {blocked}\n")
    if options.json:
        _print_json(_summary(run_id, results, code, blocked))
    return code


def _summary(run_id: str, results: Sequence[Result], code: int, blocked: str | None) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "status": "blocked" if blocked else ("already done" if all(r.already_done for r in results) else "done"),
        "exit_code": code,
        **({"error": blocked} if blocked else {}),
        "jobs": [
            {
                "job": r.record.job,
                "step": r.record.step,
                "status": "already done" if r.already_done else r.record.status,
                "documents_in": r.record.documents_in,
                "documents_kept": r.record.documents_kept,
                "documents_dropped": r.record.documents_dropped,
                "documents_quarantined": r.record.documents_quarantined,
                "counts": r.record.counts,
                "digest": r.record.digest,
                "seconds": r.record.seconds,
                "notes": r.record.notes,
                "outputs": [{k: o[k] for k in ("name", "version", "rows")} for o in r.record.outputs],
            }
            for r in results
        ],
    }


def _settings(options: argparse.Namespace) -> int:
    from jobs.runtime.reference import print_settings, reference_markdown, reference_yaml, signature_curves

    if options.reference:
        sys.stdout.write(reference_yaml() if options.reference == "yaml" else reference_markdown())
        return 0
    resolved = _resolved(options)
    if options.json:
        values = resolved.settings.model_dump(mode="json", by_alias=True)
        curves = signature_curves(resolved.settings)
        _print_json(
            {
                "status": "done",
                "exit_code": 0,
                "settings": values,
                "origins": dict(resolved.origins),
                "signatures": curves,
            }
        )
    else:
        print_settings(resolved)
        for name, curve in signature_curves(resolved.settings).items():
            sys.stdout.write(f"{name}: {curve}\n")
    return 0


def _runs(options: argparse.Namespace) -> int:
    from jobs.runtime.inspect import print_runs

    resolved = _resolved(options)
    return print_runs(resolved.settings, options.run_id, options.limit, options.settings, options.json)


def _show(options: argparse.Namespace) -> int:
    from jobs.runtime.inspect import print_table_rows

    resolved = _resolved(options)
    return print_table_rows(
        resolved.settings, options.table, options.where, options.columns, options.limit, options.at, options.json
    )


def _explain(options: argparse.Namespace) -> int:
    from jobs.explain import print_explanation

    return print_explanation(_resolved(options).settings, options.doc_id, options.limit, options.json)


def _audit(options: argparse.Namespace) -> int:
    from jobs.audit import print_audit

    if options.output and options.read:
        raise SettingsError("weir audit either writes (--output) or reads (--read)")
    settings = _resolved(options).settings
    return print_audit(
        settings, options.step, options.output, options.read, options.judge, options.characters, options.json
    )


def _demo_corpus(options: argparse.Namespace) -> int:
    from jobs.demo import write_corpus

    return write_corpus(options)


def _demo(options: argparse.Namespace) -> int:
    from jobs.demo import run_demo

    return run_demo(options)


def _unexpected(error: Exception) -> str:
    from jobs.runtime.failures import reason_of
    from jobs.runtime.session import log_file

    log = log_file()
    with log.open("a", encoding="utf-8") as stream:
        traceback.print_exception(error, file=stream)
    return f"unexpected error: {reason_of(error)}\nDetails, with Spark's own log: {log}"


def _print_json(values: dict[str, Any]) -> None:
    sys.stdout.flush()
    sys.stdout.write(json.dumps(values, default=str, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
