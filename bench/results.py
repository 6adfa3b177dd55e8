# SPDX-License-Identifier: Apache-2.0
"""Medians that are kept with the sources: a file per kind of CPU and number of threads."""

import json
import pathlib
import re
import subprocess

FOLDER = pathlib.Path(__file__).parent / "results"
KEYS = ("case", "subject", "unit", "median", "spread")


def keep(run):
    """Puts the rows of a run in the place of earlier ones of the same cases; returns the file."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{run['cpu']} {run['threads']}".lower()).strip("-")
    path = FOLDER / f"{words}.json"
    kept = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    new = {row["case"] for row in run["rows"]}
    rows = [row for row in kept if row["case"] not in new]
    rows += [{key: row[key] for key in KEYS} for row in run["rows"]]
    rows.sort(key=lambda row: row["case"])  # subjects stay in their order
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps({"cpu": run["cpu"], "threads": run["threads"]})[:-1]
    FOLDER.mkdir(exist_ok=True)
    path.write_text(f'{head}, "rows": [\n{lines}\n]}}\n', "utf-8")
    return path


def of_commit(commit):
    """The files that a commit keeps."""

    def git(*arguments):
        command = ["git", "-C", str(FOLDER.parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"expected a file or a commit, got {commit}: {done.stderr.strip()}")
        return done.stdout

    names = git("ls-tree", "--name-only", commit, "results/").split()
    return [json.loads(git("show", f"{commit}:./{name}")) for name in names]
