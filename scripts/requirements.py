# SPDX-License-Identifier: Apache-2.0
"""Prints requirements of pyproject.toml, one per line: `build`, `run`, or the name of an extra."""

import pathlib
import sys
import tomllib


def requirements(groups):
    root = pathlib.Path(__file__).parents[1]
    config = tomllib.loads((root / "pyproject.toml").read_text())
    table = {
        "build": config["build-system"]["requires"],
        "run": config["project"]["dependencies"],
        **config["project"]["optional-dependencies"],
    }
    return [requirement for group in groups for requirement in table[group]]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
