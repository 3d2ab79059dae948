"""Faults of a cluster that take minutes: only `make test-cluster` runs them."""

from __future__ import annotations

import os

# `make test-cluster` sets it. Without it nothing here is collected.
if not os.environ.get("EFEMB_CLUSTER"):
    collect_ignore_glob = ["test_*.py"]
