"""The example, and the script of docs/distributed.md."""

import re
import runpy
from pathlib import Path

from minigrad.distributed import membership

ROOT = Path(__file__).parents[2]


def test_the_example_reads_digits_with_any_number_of_ranks(monkeypatch, capsys):
    monkeypatch.setattr(membership, "_of_process", [])
    main = runpy.run_path(str(ROOT / "examples" / "ranks.py"))["main"]
    for words in ([], ["--threads", "3"]):
        main([*words, "--epochs", "2"])
        *losses, last = capsys.readouterr().out.splitlines()
        assert len(losses) == 2
        ranks, share = re.fullmatch(r"(\d) ranks: ([\d.]+)% of new digits", last).groups()
        assert ranks == (words[1] if words else "1")
        assert float(share) > 80


def test_the_script_of_the_page_trains(monkeypatch):
    monkeypatch.setattr(membership, "_of_process", [])
    page = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
    found = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], found)
    assert found["loss"].item() < 2.3  # of ten equal guesses


def test_the_page_says_the_size_of_buckets_and_the_time_limit():
    from minigrad.distributed.data_parallel import BUCKET_BYTES

    page = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
    assert f"buckets of {BUCKET_BYTES >> 20} MiB" in page
    assert f"{membership.TIMEOUT:g} s by default" in page
