"""Grade new answers of readers, and keep them with their verdict: a first try.

    python -m tests.readers.add new.json          grades them, adds them to answers.json
    python -m tests.readers.add --judged why.json  keeps what a reader of the messages thought

An answer is {"exercise", "kind": "wrong" or "right", "name", "round", "promise", "input", "code":
lines}. What the checks of this day made of it is kept beside it: `graded_right_at_first`, and of a
wrong one the message that a learner would see first, `message`. A verdict about such a message is
{"exercise", "name", "message_fits": "yes", "no" (it misleads) or "neutral"}.
"""

import argparse
import json
import pathlib
import sys

from minigrad.course.mutants import grade_source
from minigrad.grader.launcher import Server
from tests.readers.evidence import ANSWERS, PATH, SEED, source_of

FIELDS = ("exercise", "kind", "name", "round", "promise", "input")


def graded(server, answer):
    """Return an answer with what the checks make of it now."""
    stem, source = source_of(answer)
    result = grade_source(server, stem, answer["exercise"].partition(".")[2], source, SEED)
    first = result.first_failure
    new = {field: answer[field] for field in FIELDS}
    new["graded_right_at_first"] = result.passed == (answer["kind"] == "right")
    if first and first.message:
        new["message"] = [f"{label}: {text}" for label, text in first.message.parts() if text]
    return new | {"code": answer["code"]}


def key(answer):
    """Return what tells an answer from all others."""
    return answer["exercise"], answer["name"]


def add(paths):
    """Grade what is new, print what was graded wrong, and keep it all."""
    known = set(map(key, ANSWERS))
    with Server() as server:
        for path in paths:
            for answer in json.loads(path.read_text(encoding="utf-8")):
                while key(answer) in known:
                    answer["name"] += "_2"
                known.add(key(answer))
                ANSWERS.append(graded(server, answer))
                if not ANSWERS[-1]["graded_right_at_first"]:
                    said = "\n    ".join(ANSWERS[-1].get("message", ()))
                    about = f"{answer['kind']} {answer['exercise']} {answer['name']}"
                    sys.stdout.write(f"{about}: {answer['input']}\n    {said}\n")


def judge(paths):
    """Keep verdicts about messages."""
    answers = {key(answer): answer for answer in ANSWERS}
    for path in paths:
        for verdict in json.loads(path.read_text(encoding="utf-8")):
            assert verdict["message_fits"] in ("yes", "no", "neutral")
            answers[key(verdict)]["message_fits"] = verdict["message_fits"]


def main():
    """Add answers or verdicts; write the file in the order of lessons and rounds."""
    parser = argparse.ArgumentParser(prog="python -m tests.readers.add", description=__doc__)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--judged", action="store_true", help="the files hold verdicts")
    options = parser.parse_args()
    (judge if options.judged else add)(options.files)
    ANSWERS.sort(key=lambda answer: answer["exercise"][:2])
    PATH.write_text(json.dumps(ANSWERS, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
