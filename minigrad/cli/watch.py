"""`minigrad watch`: grades what a save changed, and prints it."""

from __future__ import annotations

import argparse
import io
import signal
import sys
import time
from functools import partial

from minigrad.cli.checking import patience, remember
from minigrad.cli.next_exercise import brief
from minigrad.course.regrading import POLL_SECONDS, Watch
from minigrad.grader.folder import find_folder, find_stem, known_stems
from minigrad.grader.launcher import Server
from minigrad.grader.report import Style, text
from minigrad.grader.result import Result
from minigrad.grader.sandbox import Worker


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    folder = find_folder()
    stems = [find_stem(options.lesson)] if options.lesson else known_stems()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Server() as server:
            watch = Watch(folder, stems, server, partial(patience, server))
            Worker(server, "", "watch.py").close()  # so that even the first save is graded quickly
            print("Watching exercises/: save a file, and what you changed is graded. Ctrl-C ends.")
            print(brief(folder))
            while True:
                time.sleep(POLL_SECONDS)
                passed = []
                for news in watch.step():
                    if isinstance(news, Result):
                        remember(folder, news)
                        passed.append(news.passed)
                    print(text(news, Style()) if isinstance(news, Result) else news)
                if passed and all(passed):
                    print(brief(folder))
    except KeyboardInterrupt:
        print(f"\nStopped watching. {brief(folder)}")
        return 0
