"""minigrad.data: the digits and how they are cut."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigrad import errors
from minigrad.data import batches, load_digits, load_text, stratified_split


def test_load_digits_returns_the_documented_arrays():
    images, labels = load_digits()
    assert (images.shape, images.dtype) == ((1797, 8, 8), np.float32)
    assert (labels.shape, labels.dtype) == ((1797,), np.int64)
    assert images.min() == 0
    assert images.max() == 1
    assert (images * 16 == np.round(images * 16)).all()
    assert Counter(labels.tolist()) == dict(
        enumerate([178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    )


def test_load_digits_images_show_their_labels():
    """A nearest-centroid rule reads 9 of 10 digits, which shuffled labels could not give."""
    images, labels = load_digits()
    flat = images.reshape(len(images), -1)
    centroids = np.stack([flat[labels == digit].mean(axis=0) for digit in range(10)])
    distances = ((flat[:, None, :] - centroids) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == labels).mean() > 0.9


def test_load_digits_twice_shares_nothing():
    first, _ = load_digits()
    first[:] = -1
    second, _ = load_digits()
    assert second.min() == 0


def test_load_text_returns_the_documented_prose():
    text = load_text()
    assert (len(text), len(set(text))) == (211_028, 94)
    assert text.isascii()
    assert "\r" not in text
    words = Counter(text.split())
    assert words["the"] > 1500  # English
    assert words["statement"] > 100  # about Python


def test_stratified_split_of_the_digits_holds_out_a_fifth_of_each_class():
    images, labels = load_digits()
    (x, y), (x_held_out, y_held_out) = stratified_split(images, labels, 0.2, seed=3)
    assert len(x) == len(y)
    assert len(x_held_out) == len(y_held_out)
    assert len(x) + len(x_held_out) == 1797
    for digit in range(10):
        count = int((labels == digit).sum())
        assert int((y_held_out == digit).sum()) == round(count * 0.2)


@given(
    labels=st.lists(st.integers(-2, 5), max_size=60),
    held_out=st.floats(0.05, 0.95),
    seed=st.integers(0, 2**32),
)
def test_stratified_split_loses_and_doubles_no_row(labels, held_out, seed):
    label_array = np.array(labels, dtype=np.int64)
    rows = np.arange(len(labels))
    (x, y), (x_held_out, y_held_out) = stratified_split(rows, label_array, held_out, seed)
    assert sorted([*x.tolist(), *x_held_out.tolist()]) == rows.tolist()
    assert (label_array[x] == y).all()
    assert (label_array[x_held_out] == y_held_out).all()


@pytest.mark.parametrize("labels", [[np.nan, 1.0], ["cat", "dog"], [False, True], [7, -7]])
def test_stratified_split_takes_labels_of_any_kind(labels):
    training, held_out = stratified_split(np.arange(40), np.repeat(labels, 20), 0.3)
    assert np.bincount(training[0] // 20).tolist() == [14, 14]
    assert np.bincount(held_out[0] // 20).tolist() == [6, 6]


@pytest.mark.parametrize(
    "labels",
    [np.eye(4, dtype=int), np.zeros((4, 1)), np.zeros((4, 0)), np.array([None, None, 1, 1])],
)
def test_stratified_split_refuses_labels_that_are_no_column_of_classes(labels):
    with pytest.raises(errors.ArgumentTypeError, match=r"wanted labels \(n,\)"):
        stratified_split(np.arange(4), labels, 0.5)


def test_stratified_split_depends_on_the_seed_alone():
    rows, labels = np.arange(100), np.arange(100) % 4
    held_out = [stratified_split(rows, labels, seed=seed)[1][0].tolist() for seed in (1, 1, 2)]
    assert held_out[0] == held_out[1]
    assert held_out[0] != held_out[2]


@pytest.mark.parametrize("held_out", [0, 1, -0.1, 20])
def test_stratified_split_with_an_impossible_share_raises(held_out):
    with pytest.raises(ValueError, match="held_out above 0 and below 1"):
        stratified_split(np.zeros(4), np.zeros(4), held_out)


def test_stratified_split_of_unequal_lengths_raises():
    with pytest.raises(ValueError, match="4 inputs and 3 labels"):
        stratified_split(np.zeros(4), np.zeros(3))


@given(n_rows=st.integers(0, 40), batch_size=st.integers(1, 12), seed=st.none() | st.integers(0, 9))
def test_batches_together_hold_each_row_once(n_rows, batch_size, seed):
    rows = np.arange(n_rows)
    pairs = list(batches(rows, -rows, batch_size=batch_size, seed=seed))
    assert all((x == -y).all() for x, y in pairs)
    assert all(len(x) == batch_size for x, _ in pairs[:-1])
    together = [row for x, _ in pairs for row in x.tolist()]
    assert sorted(together) == rows.tolist()
    if seed is None:
        assert together == rows.tolist()


def test_batches_with_drop_last_leaves_out_the_small_one():
    assert [len(x) for x, _ in batches(np.zeros(7), np.zeros(7), batch_size=3, drop_last=True)] == [
        3,
        3,
    ]


def test_batches_with_wrong_arguments_raises_at_the_call():
    with pytest.raises(ValueError, match="batch_size of at least 1"):
        batches(np.zeros(3), np.zeros(3), batch_size=0)
    with pytest.raises(ValueError, match="3 inputs and 2 labels"):
        batches(np.zeros(3), np.zeros(2), batch_size=1)


def test_batches_of_any_number_of_arrays_stay_in_step():
    a, b, c = np.arange(7), np.arange(14).reshape(7, 2), np.arange(7.0)
    seen = list(batches(a, b, c, batch_size=3, seed=2))
    assert [len(x) for x, _, _ in seen] == [3, 3, 1]
    for x, y, z in seen:
        assert (y[:, 0] == 2 * x).all()
        assert (z == x).all()
        assert (y.dtype, z.dtype) == (b.dtype, c.dtype)
    again = [x.tolist() for x, _, _ in batches(a, b, c, batch_size=3, seed=2)]
    assert again == [x.tolist() for x, _, _ in seen]
    assert [x.tolist() for (x,) in batches(a, batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6]]


def test_batches_say_which_arrays_do_not_fit():
    with pytest.raises(
        errors.ArgumentError, match="3 in array 0 and 2 in array 1 and 3 in array 2"
    ):
        batches(np.zeros(3), np.zeros(2), np.zeros(3), batch_size=1)
    with pytest.raises(errors.ArgumentTypeError, match="at least one array"):
        batches(batch_size=1)
    with pytest.raises(errors.ArgumentTypeError, match="array 2"):
        batches(np.zeros(3), np.zeros(3), [1, 2, 3], batch_size=1)
