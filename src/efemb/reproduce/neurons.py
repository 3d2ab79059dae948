"""Neurons: g-emb and ng-emb against factor analysis on recordings of zebrafish brains."""

from __future__ import annotations

from collections.abc import Sequence

from efemb.errors import DataError
from efemb.reproduce.claims import show
from efemb.reproduce.neuron_claims import SAID, claims
from efemb.reproduce.neuron_data import TITLES, Source, recording
from efemb.reproduce.neuron_figure import fitted_model, weight_summary, well_inside
from efemb.reproduce.neuron_fits import PROTOCOLS, STUDY_NAME, fit_job
from efemb.reproduce.neuron_lags import is_lag_job, lag_jobs, lag_table
from efemb.reproduce.neuron_rows import NeuronRow, rows_of
from efemb.reproduce.neuron_settings import FULL, QUICK, NeuronModel, Plan, main_models
from efemb.reproduce.neuron_settings import other_readings as readings
from efemb.reproduce.neuron_showing import printed_table, readings_shown, undifferenced_shown
from efemb.reproduce.neuron_tables import (
    context_table,
    error_table,
    known_table,
    readings_table,
    settings_table,
    size_table,
    step_table,
    undifferenced_table,
)
from efemb.reproduce.runner import Job, Outcome
from efemb.reproduce.study import Options, Results, Study
from efemb.table import Table

ABOUT = (
    "The paper's recording (10,000 neurons x 3,000 frames of Ahrens and others 2013) is not "
    "public, so its figures stand beside those of other recordings: orders and differences can "
    "be compared, errors cannot. Errors are mean squared errors in units of the overall variance."
)
FIGURE = (
    "Neurons of {title} from above (blue circles), and three of them with their {c} nearest "
    "neighbours: edges are rho_n . alpha_m of g-emb (K={k}), {positive} positive, {negative} "
    "negative, the more opaque the larger. {summary}"
)
COLOURS = {"paper": ("green", "red"), "colorblind": ("blue", "orange")}


class NeuronStudy(Study):
    """The error table, what the paper leaves open, contexts with a past, and the figure."""

    name = STUDY_NAME
    title = "Neurons: calcium activity of zebrafish"
    minutes = 35.0

    def __init__(self, full: Plan = FULL, quick: Plan = QUICK) -> None:
        self.full, self.quick = full, quick

    def plan(self, options: Options) -> Plan:
        """What is run."""
        return self.quick if options.quick else self.full

    def jobs(self, options: Options) -> Sequence[Job]:
        """The paper's table of every recording first, what takes long last."""
        plan, n_jobs = self.plan(options), options.n_jobs
        seeds, found, there = options.used_seeds(), [], self._there(options)
        for name in there:
            main, first = main_models(plan.ks), _source(name, options, plan)
            for seed in seeds if name != "simulated" else seeds[:1]:
                source = _source(name, options, plan, seed)
                for model in main:
                    # The paper's figure, of the first recording that is there.
                    keep = (name, model, seed) == (there[0], plan.figure_model, seeds[0])
                    found.append(fit_job(model, source, n_jobs, keep))
            if name != "simulated":
                found += [fit_job(model, first, n_jobs) for model in readings(plan.ks)]
            other = _source(name, options, plan, differenced=False)
            found += [fit_job(model, other, n_jobs) for model in main]
            if name == "tectum":
                blocks = [_source(name, options, plan, seed, blocks=True) for seed in seeds]
                found += lag_jobs(blocks, min(plan.ks), n_jobs)
        for name in there:
            first = _source(name, options, plan)
            found += [fit_job(model, first, n_jobs) for model in plan.minibatches(name)]
        return found

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """All tables, then the figure."""
        plan = self.plan(options)
        rows = rows_of(one for one in outcomes if not is_lag_job(one))
        out.page.paragraph(ABOUT)
        missing = [TITLES[name] for name in plan.recordings if name not in _names(rows)]
        if missing:
            out.page.paragraph(f"Left out, since they could not be had: {', '.join(missing)}.")
        for name in _names(rows):
            _error_tables(name, rows, out)
        if plan.n_thunder is None:
            _show(out, "known", known_table(rows), _KNOWN)
        _choices(rows, plan, out)
        _show(out, "past", lag_table(outcomes), _PAST)
        out.page.paragraph(_CLAIMS)
        show("claims", claims(rows, plan.ks), out)
        _show(out, "settings", settings_table(), "Settings of the paper, and ours.")
        for outcome in outcomes:
            if "rho" in outcome.arrays:
                _figure(outcome, out)

    def _there(self, options: Options) -> list[str]:
        """Recordings that can be had; the report names the others."""
        plan, found = self.plan(options), []
        for name in plan.recordings:
            try:
                if name != "simulated":
                    recording(name, plan, options.data_home)
            except DataError:
                continue
            found.append(name)
        return found


_PAST = (
    "zebrafish-tectum, differenced: g-emb given 50 neighbours, and given the past as well; one "
    "neuron out, on held-out stretches of 40 frames. Differences are to neighbours alone, standard "
    "errors over stretches. Differencing itself makes a frame depend on the one before."
)
_KNOWN = (
    "One neuron out on split 0, beside an independent NumPy program (Gram statistics and L-BFGS; "
    "factor analysis by scikit-learn)."
)
_CLAIMS = (
    "Sentences of the paper. Differences are paired by frame, with standard errors over frames, "
    "and positive where the sentence holds; “holds” needs more than two standard errors in each."
)


def _source(
    name: str,
    options: Options,
    plan: Plan,
    seed: int | None = None,
    *,
    differenced: bool = True,
    blocks: bool = False,
) -> Source:
    split = options.used_seeds()[0] if seed is None else seed
    return Source(name, differenced, split, plan, options.data_home, blocks)


def _show(
    out: Results, name: str, table: Table | None, caption: str, shown: Table | None = None
) -> None:
    """Write a table and show it (or `shown`), unless it is empty: a recording may not be there."""
    if table is not None:
        out.write(name, table)
        out.page.table(table if shown is None else shown, caption)


def _names(rows: Sequence[NeuronRow]) -> list[str]:
    return list(dict.fromkeys(row.recording for row in rows))


def _error_tables(name: str, rows: Sequence[NeuronRow], out: Results) -> None:
    mine = [
        row
        for row in rows
        if row.recording == name and row.differenced and not row.model.differences()
    ]
    n_frames = sum(one.figures["one_out"]["n_frames"] for one in mine[0].outcomes.values())
    for protocol in PROTOCOLS:
        caption = (
            f"{TITLES[name]}, differenced, {SAID[protocol]}: mean squared error of {n_frames} test "
            "frames (all splits together) ± standard error over frames, and less that of g-emb "
            "(c=50) of the same K, paired by frame (positive: worse). The files have standard "
            "errors over entries and times as well."
        )
        _show(
            out,
            f"{name}_{protocol}",
            error_table(mine, protocol),
            caption,
            printed_table(mine, protocol),
        )


def _choices(rows: Sequence[NeuronRow], plan: Plan, out: Results) -> None:
    """What the paper leaves open, and what becomes of contexts."""
    caption = (
        "Differences x_t - x_(t-1), and activity itself (each neuron less its mean over the "
        "training frames), in units of the overall variance of each, and raw, in the units of the "
        "recording; first split."
    )
    _show(out, "differenced_or_not", undifferenced_table(rows), caption, undifferenced_shown(rows))
    caption = (
        "Other readings, and the paper's optimiser (100 frames a step, "
        f"{plan.iterations} steps, constant chosen on validation), beside the main table's model; "
        "first split. “mean of neighbours” with lambda / c is the same model as long as all "
        "neighbours are seen."
    )
    _show(out, "readings", readings_table(rows), caption, readings_shown(rows))
    caption = "Neighbours that are left where a quarter of the neurons is hidden."
    _show(out, "context_sizes", context_table(rows, min(plan.ks)), caption)
    every = size_table(rows, min(plan.ks))
    if every is not None:
        out.write("context_sizes_all", every)
    _show(out, "adagrad", step_table(rows), "Validation error of each constant of Adagrad.")


def _figure(outcome: Outcome, out: Results) -> None:
    from efemb.plots import spatial_weights

    model = NeuronModel(**outcome.job.settings["model"])
    fitted = fitted_model(model, outcome.arrays)
    words = {"title": TITLES[outcome.job.settings["source"]["recording"]], "c": model.c}
    words |= {"k": model.k, "summary": weight_summary(fitted)}
    chosen = well_inside(fitted)
    for palette, (positive, negative) in COLOURS.items():
        caption = FIGURE.format(positive=positive, negative=negative, **words)
        out.figure(f"weights_{palette}", spatial_weights(fitted, chosen, palette=palette), caption)


STUDY = NeuronStudy()
