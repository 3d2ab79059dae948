"""Save the golden models of a release: `PYTHONPATH=tests python -m goldens.make_models`.

Each release adds a folder; those of older versions stay, since their models must be read for ever.
"""

from __future__ import annotations

import json
from pathlib import Path

import efemb
from goldens.saved import SAVED, ask_everything

FOLDER = Path(__file__).parent


def main() -> None:
    """Write `models-<version>/`."""
    folder = FOLDER / f"models-{efemb.__version__}"
    folder.mkdir()  # an error if it is there: no model of a release is written again
    for name, fit in SAVED.items():
        print(name)
        fit().save(folder / name)
        asked = ask_everything(efemb.load(folder / name), fit)
        (folder / f"{name}.json").write_text(json.dumps(asked) + "\n", "utf-8")


if __name__ == "__main__":
    main()
