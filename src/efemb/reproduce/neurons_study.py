"""Neurons: g-emb and ng-emb against factor analysis on recordings of zebrafish brains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.errors import DataError
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts import Neighbors
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from efemb.plots import spatial_weights
from efemb.plots.spatial_weights import Edges, choose_spread_out
from efemb.reproduce.claims import show_claims
from efemb.reproduce.jobs import Job, Outcome
from efemb.reproduce.neurons_fits import (
    PROTOCOLS,
    STUDY_NAME,
    is_lag_job,
    make_fit_job,
    make_ingredients,
    make_lag_jobs,
)
from efemb.reproduce.neurons_models import (
    FULL,
    QUICK,
    NeuronModel,
    Plan,
    list_main_models,
    list_other_readings,
)
from efemb.reproduce.neurons_recordings import TITLES, Source, load_recording
from efemb.reproduce.neurons_scores import SAID, NeuronRow, collect_neuron_rows, judge_errors
from efemb.reproduce.neurons_tables import (
    tabulate_contexts,
    tabulate_errors,
    tabulate_errors_like_paper,
    tabulate_known,
    tabulate_lags,
    tabulate_readings,
    tabulate_readings_for_page,
    tabulate_settings,
    tabulate_sizes,
    tabulate_steps,
    tabulate_undifferenced,
    tabulate_undifferenced_for_page,
)
from efemb.reproduce.study import Options, Results, Study
from efemb.table import Table

ABOUT = (
    "The paper's recording (10,000 neurons x 3,000 frames of Ahrens and others 2013) is not "
    "public, so its figures are shown next to those of other recordings: order and differences can "
    "be compared, errors cannot. Errors are mean squared errors in units of the overall variance."
)
FIGURE = (
    "Neurons of {title} from above (blue circles), and three of them with their {c} nearest "
    "neighbors: edges are rho_n . alpha_m of g-emb (K={k}), {positive} positive, {negative} "
    "negative; opacity is proportional to size. {summary}"
)
COLORS = {"paper": ("green", "red"), "colorblind": ("blue", "orange")}


class NeuronStudy(Study):
    """The error table, open choices of the paper, contexts with a past, and the figure."""

    name = STUDY_NAME
    title = "Neurons: calcium activity of zebrafish"
    minutes = 35.0

    def __init__(self, full: Plan = FULL, quick: Plan = QUICK) -> None:
        self.full, self.quick = full, quick

    def plan(self, options: Options) -> Plan:
        """The full or the quick plan."""
        return self.quick if options.quick else self.full

    def jobs(self, options: Options) -> Sequence[Job]:
        """First the paper's table for every recording; the slowest jobs last."""
        plan, n_jobs = self.plan(options), options.n_jobs
        seeds, jobs, available = options.used_seeds(), [], self._list_available(options)
        for name in available:
            main, first = list_main_models(plan.ks), _make_source(name, options, plan)
            for seed in seeds if name != "simulated" else seeds[:1]:
                source = _make_source(name, options, plan, seed)
                for model in main:
                    # For the paper's figure, on the first available recording.
                    keep = (name, model, seed) == (available[0], plan.figure_model, seeds[0])
                    jobs.append(make_fit_job(model, source, n_jobs, keep))
            if name != "simulated":
                jobs += [
                    make_fit_job(model, first, n_jobs) for model in list_other_readings(plan.ks)
                ]
            other = _make_source(name, options, plan, differenced=False)
            jobs += [make_fit_job(model, other, n_jobs) for model in main]
            if name == "tectum":
                blocks = [_make_source(name, options, plan, seed, blocks=True) for seed in seeds]
                jobs += make_lag_jobs(blocks, min(plan.ks), n_jobs)
        for name in available:
            first = _make_source(name, options, plan)
            jobs += [make_fit_job(model, first, n_jobs) for model in plan.minibatches(name)]
        return jobs

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """All tables, then the figure."""
        plan = self.plan(options)
        rows = collect_neuron_rows(outcome for outcome in outcomes if not is_lag_job(outcome))
        out.page.paragraph(ABOUT)
        missing = [TITLES[name] for name in plan.recordings if name not in _list_recordings(rows)]
        if missing:
            out.page.paragraph(f"Not available, and therefore omitted: {', '.join(missing)}.")
        for name in _list_recordings(rows):
            _show_errors(name, rows, out)
        if plan.n_thunder is None:
            _show(out, "known", tabulate_known(rows), _KNOWN)
        _show_choices(rows, plan, out)
        _show(out, "past", tabulate_lags(outcomes), _PAST)
        out.page.paragraph(_CLAIMS)
        show_claims("claims", judge_errors(rows, plan.ks), out)
        _show(out, "settings", tabulate_settings(), "Settings of the paper and ours.")
        for outcome in outcomes:
            if "rho" in outcome.arrays:
                _draw_weights(outcome, out)

    def _list_available(self, options: Options) -> list[str]:
        """Recordings that are available; the report lists the others."""
        plan, available = self.plan(options), []
        for name in plan.recordings:
            try:
                if name != "simulated":
                    load_recording(name, plan, options.data_home)
            except DataError:
                continue
            available.append(name)
        return available


_PAST = (
    "zebrafish-tectum, differenced: g-emb given 50 neighbors, and given the past as well; one "
    "neuron out, on held-out stretches of 40 frames. Differences are relative to neighbors alone, "
    "with standard errors over stretches. Differencing itself makes a frame depend on the previous "
    "one."
)
_KNOWN = (
    "One neuron out on split 0, next to an independent NumPy program (Gram statistics and L-BFGS; "
    "factor analysis by scikit-learn)."
)
_CLAIMS = (
    "Differences are paired by frame, with standard errors over frames, and positive where the "
    "claim holds; “holds” requires more than two standard errors in each."
)


def _make_source(
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
    """Write a table and show it (or `shown`), unless it is empty: a recording may be missing."""
    if table is not None:
        out.write(name, table)
        out.page.table(table if shown is None else shown, caption)


def _list_recordings(rows: Sequence[NeuronRow]) -> list[str]:
    return list(dict.fromkeys(row.recording for row in rows))


def _show_errors(name: str, rows: Sequence[NeuronRow], out: Results) -> None:
    main_rows = [
        row
        for row in rows
        if row.recording == name and row.differenced and not row.model.differences()
    ]
    n_frames = sum(
        outcome.figures["one_out"]["n_frames"] for outcome in main_rows[0].outcomes.values()
    )
    for protocol in PROTOCOLS:
        caption = (
            f"{TITLES[name]}, differenced, {SAID[protocol]}: mean squared error of {n_frames} test "
            "frames (all splits together) ± standard error over frames, and the difference from "
            "g-emb (c=50) with the same K, paired by frame (positive: worse). The files also have "
            "standard errors over entries, and times."
        )
        _show(
            out,
            f"{name}_{protocol}",
            tabulate_errors(main_rows, protocol),
            caption,
            tabulate_errors_like_paper(main_rows, protocol),
        )


def _show_choices(rows: Sequence[NeuronRow], plan: Plan, out: Results) -> None:
    """Open choices of the paper, and the sizes of contexts."""
    caption = (
        "Differences x_t - x_(t-1), and activity itself (each neuron minus its mean over the "
        "training frames), in units of the overall variance of each, and raw, in the units of the "
        "recording; first split."
    )
    _show(
        out,
        "differenced_or_not",
        tabulate_undifferenced(rows),
        caption,
        tabulate_undifferenced_for_page(rows),
    )
    caption = (
        "Other readings, and the paper's optimizer (100 frames per step, "
        f"{plan.iterations} steps, constant chosen on validation), next to the main table's model; "
        "first split. “mean of neighbors” with lambda / c is the same model as long as all "
        "neighbors are observed."
    )
    _show(out, "readings", tabulate_readings(rows), caption, tabulate_readings_for_page(rows))
    caption = "Number of neighbors left when a quarter of the neurons is hidden."
    _show(out, "context_sizes", tabulate_contexts(rows, min(plan.ks)), caption)
    every = tabulate_sizes(rows, min(plan.ks))
    if every is not None:
        out.write("context_sizes_all", every)
    _show(out, "adagrad", tabulate_steps(rows), "Validation error of each Adagrad constant.")


def _draw_weights(outcome: Outcome, out: Results) -> None:
    model = NeuronModel(**outcome.job.settings["model"])
    fitted = rebuild_model(model, outcome.arrays)
    words = {"title": TITLES[outcome.job.settings["source"]["recording"]], "c": model.c}
    words |= {"k": model.k, "summary": summarize_weights(fitted)}
    chosen = choose_inner_neurons(fitted)
    for palette, (positive, negative) in COLORS.items():
        caption = FIGURE.format(positive=positive, negative=negative, **words)
        out.figure(f"weights_{palette}", spatial_weights(fitted, chosen, palette=palette), caption)


# -- the paper's figure ---------------------------------------------------------------------------


def rebuild_model(model: NeuronModel, arrays: Mapping[str, Any]) -> FittedEmbedding:
    """The fitted model of a job, from its stored vectors and positions."""
    positions = arrays["positions"]
    around = Neighbors(model.c, scale=model.scale)
    bound = around.bind(Dataset(np.zeros((1, len(positions))), positions=positions))
    return FittedEmbedding(
        Parameters(arrays["rho"], arrays["alpha"]),
        Spec.resolve(context=around, intercept=False, **make_ingredients(model)),
        positions=positions,
        lists=bound.lists,
        model="GaussianEmbedding",
    )


def choose_inner_neurons(fitted: FittedEmbedding) -> list[int]:
    """Three neurons with large weights, far apart and not isolated at the edge of the tissue."""
    edges, positions = Edges(fitted), fitted.positions
    assert positions is not None  # `rebuild_model` gives them
    members = edges.members.reshape(len(positions), -1)
    reach = np.linalg.norm(positions[members] - positions[:, None], axis=2).max(axis=1)
    strength = np.where(reach <= np.median(reach), edges.strength(), -np.inf)
    return choose_spread_out(positions[:, :2], strength, 3)


def summarize_weights(fitted: FittedEmbedding) -> str:
    """Number of negative weights, and their share of the total."""
    weight = fitted.weights()["weight"]
    negative = weight < 0
    return (
        f"{len(weight):,} weights; {negative.mean():.0%} are negative and make up "
        f"{-weight[negative].sum() / np.abs(weight).sum():.0%} of the sum of absolute weights."
    )


STUDY = NeuronStudy()
