"""Text in shards: whole documents, assigned by a hash of their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.corpus import Corpus
from efemb.data.readers.input_file import check_encoding, open_bytes, text_lines
from efemb.data.store.pieces import Dealing
from efemb.data.store.shard_store import ShardStore, check_new, write_manifest, write_shard
from efemb.errors import DataError


def read_lines(files: Sequence[str], encoding: str) -> Iterator[str]:
    """The lines of several files, each a document."""
    for name in files:
        path = Path(name)
        with open_bytes(path) as raw:
            yield from text_lines(raw, check_encoding(encoding), path)


def store_corpus(corpus: Corpus, path: Path, dealing: Dealing) -> ShardStore:
    """Write the documents of a corpus into shards, in the order of their hashes."""
    check_new(path)
    if corpus.n_documents < 2 * dealing.n_shards:
        raise DataError(
            f"the text has {corpus.n_documents:,} documents, too few for {dealing.n_shards} shards "
            "of whole documents: write one document per line, or use fewer shards"
        )
    starts, tokens = corpus.starts, corpus.tokens
    documents = (tokens[a:b].tobytes() for a, b in pairwise(starts))
    hashes = dealing.hash(documents)
    shard_of = dealing.shard(hashes)
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    files, counts = [], np.zeros(corpus.n_entities)
    for shard in range(dealing.n_shards + dealing.n_test):
        members = order[shard_of[order] == shard]
        sizes = starts[members + 1] - starts[members]
        texts = [tokens[starts[i] : starts[i + 1]] for i in members]
        codes: Any = np.concatenate([*texts, np.empty(0, tokens.dtype)])
        arrays = {"tokens": codes, "starts": np.concatenate([[0], np.cumsum(sizes)])}
        test = shard >= dealing.n_shards
        name = f"test-{shard - dealing.n_shards:05d}" if test else f"{shard:05d}"
        files.append(write_shard(path / "shards", name, len(members), len(codes), arrays))
        if not test:
            counts += np.bincount(codes, minlength=corpus.n_entities)
    report = {name: int(number) for name, number in corpus.report.items()}
    shard_groups = (files[: dealing.n_shards], files[dealing.n_shards :])
    words = (list(corpus.vocabulary.labels), counts.tolist())
    write_manifest(path, "text", words, *shard_groups, report)
    return ShardStore.open(path)
