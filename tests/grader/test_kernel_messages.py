"""Messages of lesson 13: which line they name, and that what they ask fits the mistake."""

from pathlib import Path

import pytest

from minigrad.course.mutants import grade_source

STEM = "13_cuda_kernels"
SOLUTION = (Path(__file__).parents[2] / "solutions" / f"{STEM}.py").read_text(encoding="utf-8")


def message(server, name, source):
    return grade_source(server, STEM, name, source, 11).first_failure.message


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("k_matmul_tiled", "c[row, column] = total", "c[column, row] = total", ""),
        ("k_map_guarded", "np.float32(0.01) * value", "value", "out[i] = value"),
        (
            "k_softmax_row",
            " - largest) / total",
            ")",
            "out[row, column] = math.exp(x[row, column])",
        ),
        ("k_warp_sum", "if lane == 0:", "if lane == 31:", "out[row] = total"),
    ],
)
def test_wrong_value_names_the_line_that_wrote_it(name, old, new, line, server):
    assert SOLUTION.count(old) == 1
    source = SOLUTION.replace(old, new)
    found = message(server, name, source)
    file_and_line, _, text = found.where.partition("\n")
    number = int(file_and_line.rpartition(":")[2])
    assert text.strip() == source.splitlines()[number - 1].strip() == (line or new)
    assert "written by the line below" in found.got


def test_of_two_lines_that_write_the_one_is_named_that_wrote_the_element(server):
    source = SOLUTION.replace("out[i] = np.float32(0.01) * value", "out[i] = value * value")
    wrong = message(server, "k_map_guarded", source)
    assert "out[i] = value * value" in wrong.where
    doubled = SOLUTION.replace("out[i] = value\n", "out[i] = value + value\n")
    assert doubled != SOLUTION
    assert "out[i] = value + value" in message(server, "k_map_guarded", doubled).where


def test_elements_left_out_name_the_only_line_that_writes(server):
    source = SOLUTION.replace("if i < n:", "if i < n and x[i] > np.float32(0):")
    found = message(server, "k_map_guarded", source)
    assert found.key == "unwritten"
    assert found.where.endswith("out[i] = value")


def test_elements_left_out_by_two_lines_name_neither(server):
    source = SOLUTION.replace("if i < n:", "if 0 < i < n:")
    found = message(server, "k_map_guarded", source)
    assert found.key == "unwritten"
    assert found.where.startswith("in k_map_guarded, from exercises/")


def test_race_of_one_line_that_writes_asks_who_should_and_other_races_who_waits(server):
    many = SOLUTION.replace("if lane == 0:", "if lane < 2:")
    assert "Which of them should write it" in message(server, "k_warp_sum", many).attempt
    zero = "        s[t] = np.float32(0)\n"
    early = SOLUTION.replace(f"{zero}    cuda.syncthreads()\n", zero)
    assert "who waits" in message(server, "k_block_sum", early).attempt
