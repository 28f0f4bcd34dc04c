"""Which tests are quick, which depend on time, and which take turns.

Quick: a broad sample that a newcomer waits for three minutes at most. Of each test function of a
file, every so many-th case is quick, the first one always; files that are not named here have none,
nor have functions in LONG. `python3 start.py test` runs these, `--all` runs everything.

TIMED: files whose tests wait for other processes, for timers or for a browser. One that fails
beside others is run again by `.ci/run`, alone; no other test ever is.

TURNS: tests of tables that multiply (operations, dtypes, devices, layouts, seeds). `.ci/run` runs a
tenth of their cases, the next tenth with the next commit; ten commits see all. So it does with the
tests of every fact that is known (`tests/facts.py`).
"""

import collections
import zlib

from tests import facts

EVERY = {  # file, folder or function of tests/: every how many-th case
    "autograd/test_aliases.py": 60, "autograd/test_debug.py": 12, "autograd/test_functional.py": 2,
    "autograd/test_graph.py": 2, "autograd/test_inplace.py": 1, "autograd/test_manager.py": 2,
    "autograd/test_inference.py": 1, "autograd/test_writes_in_backward.py": 5,
    "cli/test_status_next.py": 12, "cli/test_merge.py": 6,
    "compiler/test_capture.py": 2, "compiler/test_compiled.py": 5,
    "compiler/test_compiled_effects.py": 3, "compiler/test_counted.py": 3,
    "compiler/test_donation.py": 10, "compiler/test_effects.py": 3, "compiler/test_fusion.py": 12,
    "compiler/test_guards.py": 3, "compiler/test_guards_values.py": 4,
    "compiler/test_indexing.py": 20, "compiler/test_numbers.py": 20, "compiler/test_ops.py": 60,
    "compiler/test_passes.py": 3, "compiler/test_passes_edges.py": 2,
    "compiler/test_passes_memory.py": 4, "compiler/test_plan.py": 10,
    "compiler/test_pullback.py": 8, "compiler/test_refusals.py": 8, "compiler/test_retrace.py": 4,
    "compiler/test_steps.py": 40, "compiler/test_surroundings.py": 5,
    "cuda/test_jit.py": 8, "cuda/test_functions.py": 6,
    "devices/gpu/test_device.py": 8, "devices/gpu/test_indexing.py": 16,
    "devices/gpu/test_matmul.py": 30, "devices/gpu/test_programs_elementwise.py": 8,
    "devices/gpu/test_programs_reduce.py": 20, "devices/gpu/test_programs_rows.py": 16,
    "devices/gpu/test_scan.py": 30, "devices/gpu/test_updates.py": 6,
    "devices/gpu/test_convolution.py": 20,
    "devices/test_mathematics.py": 12, "devices/test_matmul.py": 30,
    "devices/test_random.py": 12, "devices/test_rows.py": 6,
    "devices/test_threads.py": 6, "devices/test_windows.py": 10,
    "distributed": 3,
    "formulas": 8,
    "grader/test_checks.py": 40, "grader/test_compare.py": 10, "grader/test_drivers.py": 5,
    "grader/test_message.py": 4, "grader/test_progress.py": 6, "grader/test_reading.py": 8,
    "memory/test_copy_on_write.py": 2, "memory/test_monitor.py": 6, "memory/test_overlap.py": 4,
    "memory/test_pool.py": 3, "memory/test_poison_training.py": 6,
    "nn": 3,
    "ops/test_arguments.py": 8, "ops/test_devices.py": 40, "ops/test_gradients.py": 12,
    "ops/test_indexing.py": 3, "ops/test_joining.py": 2, "ops/test_layouts.py": 5,
    "ops/test_network.py": 3, "ops/test_random.py": 6, "ops/test_sums.py": 20,
    "ops/test_threads.py": 40, "ops/test_values.py": 10, "ops/test_zero_gradients.py": 30,
    "optim/test_clipping.py": 2, "optim/test_saving.py": 5, "optim/test_schedules.py": 3,
    "optim/test_steps.py": 6, "optim/test_tracking.py": 5, "optim/test_hooks.py": 1,
    "simt/test_faults.py": 2, "simt/test_machine_atomics.py": 12,
    "simt/test_machine_constructs.py": 5, "simt/test_machine_errors.py": 12,
    "simt/test_machine_types.py": 40, "simt/test_memory.py": 5, "simt/test_races.py": 6,
    "simt/test_counts.py": 3,
    "test_dtypes.py": 6, "test_errors.py": 8, "test_golden.py": 2, "test_golden_special.py": 8,
    "test_interop.py": 20, "test_lessons.py": 30, "test_one_meaning.py": 20, "test_pages.py": 7,
    "test_random_programs.py": 60, "test_seams.py": 8, "test_semantics.py": 8,
    "test_argument_types.py": 60, "test_data.py": 2, "test_forks.py": 1, "test_tiers.py": 40,
    "simt/test_races.py::test_random_programs": 2,
    "viz/test_graph.py": 6, "viz/test_layout.py": 3, "viz/test_play.py": 4, "tour/test_path.py": 1,
    "ops/test_values.py::test_operation_on_every_sample_equals_numpy": 1,
    "ops/test_gradients.py::test_first_order_on_every_sample_equals_differences": 2,
    "cuda/test_compiled.py::test_devices_do_not_mix": 1,
    "cuda/test_jit_refused.py": 4, "cuda/test_writes.py": 4,
    "compiler/test_arena.py": 2, "compiler/test_callbacks.py": 3, "compiler/test_escapes.py": 2,
    "compiler/test_compiled_results.py": 3, "compiler/test_guards_modes.py": 3,
    "compiler/test_gpu_effects.py": 3, "compiler/test_gpu_fusion.py": 4,
    "compiler/test_gpu_graph.py": 3, "compiler/test_labels.py": 2, "compiler/test_picture.py": 2,
    "compiler/test_report.py": 2, "devices/gpu/test_compiler.py": 4,
    "devices/gpu/test_cublas.py": 2, "devices/gpu/test_driver.py": 3,
    "devices/gpu/test_exchange.py": 2, "devices/gpu/test_random.py": 4,
    "devices/gpu/test_runtime.py": 2, "devices/gpu/test_state.py": 2,
    "devices/gpu/test_transfer.py": 2,
    "devices/gpu/test_windows.py": 4, "grader/test_fingerprint.py": 2,
    "optim/test_chained_schedules.py": 2, "optim/test_copies.py": 2, "optim/test_names.py": 1,
    "simt/test_machine_advice.py": 4, "simt/test_machine_blocks.py": 2,
    "simt/test_machine_edges.py": 4, "simt/test_machine_groups.py": 2,
    "simt/test_machine_loops.py": 4, "viz/test_memory_picture.py": 2,
}  # fmt: skip

LONG = {  # functions of those files that take many seconds, most to compile what no other needs
    "test_children_go_on_whatever_other_threads_do",
    "test_in_place_programs_are_refused_or_right",
    "test_every_cell_of_the_table_is_a_number_or_an_error_that_says_so",
    "test_random_programs_agree_with_dual_numbers",
    "test_random_programs_give_the_same_gradients_every_way",
    "test_programs_with_writes_are_not_all_refused",
    "test_chain_of_a_million_nodes_goes_forward_back_and_away",
    "test_reads_writes_and_gradients_at_any_index_equal_eager",
    "test_reading_writing_and_gradient_at_any_index_equal_numpy",
    "test_a_large_hidden_layer_of_few_inputs_is_computed_again",
    "test_random_recordings_for_two_threads",
    "test_chain_of_views_equals_numpy_forward_and_backward",
    "test_a_kernel_may_give_a_name_of_an_input_to_a_value_of_its_own",
    "test_formula_may_use_any_names_in_a_reduction",
    "test_ten_thousand_steps_hold_bytes_and_nodes_flat",
    "test_random_recordings_give_what_the_interpreter_gives",
    "test_steps_that_train_mean_the_same",
    "test_ignored_rows_to_second_order_and_compiled",
    "test_functions_of_special_values_give_the_exact_ones",
    "test_updates_come_as_early_as_they_may_so_gradients_do_not_live_together",
    "test_writes_beside_what_is_read_and_over_it",
    "test_matmul_without_blas_symbols_takes_numpy",
    "test_spoilt_answers_get_no_full_points",
    "test_cells_of_an_unsolved_lesson_run_or_say_in_one_line_what_to_solve",
    "test_a_gradient_kernel_that_writes_to_what_it_was_given_is_refused",
    "test_command_writes_pictures_that_are_stale_or_missing",
    "test_exact_to_two_axes",
    "test_float32_kernels_contain_no_float64_and_are_vectorised",
}

TIMED = {
    "browser/test_learner.py", "cli/test_watch.py", "compiler/test_compiled_threads.py",
    "compiler/test_equality_failures.py", "compiler/test_gpu_interrupts.py",
    "compiler/test_interrupts.py", "compiler/test_machine.py", "devices/test_loader.py",
    "devices/test_store.py", "devices/test_threads.py", "devices/test_threads_together.py",
    "distributed/test_processes.py",
    "grader/test_attacks.py", "grader/test_hostile_folder.py", "grader/test_live.py",
    "grader/test_watch.py", "memory/test_interrupts.py", "test_checkpoint.py", "test_forks.py",
    "test_start_chroot.py",
}  # fmt: skip

N_TURNS = 10
TURNS = {  # files and functions
    "browser/test_learner.py", "compiler/test_convolutions.py", "compiler/test_equality.py",
    "compiler/test_equality_dtypes.py", "compiler/test_equality_random.py",
    "compiler/test_equality_values.py", "compiler/test_ops.py", "compiler/test_resumed.py",
    "devices/gpu/test_device_training.py", "devices/gpu/test_texts_compile.py",
    "ops/test_devices.py", "readers/test_readers.py", "simt/test_machine_random.py",
    "test_random_programs.py",
}  # fmt: skip
TOGETHER = {"test_lessons.py"}  # all cases of a lesson in one turn: they run its notebook once

# Folders and files that test other things where the compiler for GPUs is installed.
COMPILER = ("tests/cuda/", "tests/devices/gpu/", "tests/compiler/test_gpu")


def share_of(path):
    """Every how many-th case of a file is quick; None for none."""
    name = path.removeprefix("tests/")
    return EVERY.get(name) or EVERY.get(name.partition("/")[0])


def quick(items):
    """Those of pytest's items that are quick."""
    seen, chosen = collections.Counter(), []
    for item in items:
        path, _, name = item.nodeid.partition("::")
        function = path, name.partition("[")[0].rpartition("::")[2]
        every = EVERY.get(f"{path.removeprefix('tests/')}::{function[1]}") or share_of(path)
        if every is not None and function[1] not in LONG and seen[function] % every == 0:
            chosen.append(item)
        seen[function] += 1
    return chosen


def is_timed(nodeid):
    """Whether a test depends on time."""
    return _file(nodeid) in TIMED


def in_turn(items, turn, is_known=facts.is_known):
    """Those of pytest's items that run in a turn: all but nine tenths of what takes turns."""
    seen, chosen = collections.Counter(), []
    for item in items:
        function = item.nodeid.partition("[")[0]
        name = function.removeprefix("tests/")
        file = name.partition("::")[0]
        fact = facts.fact_of(item.nodeid)
        if TURNS.isdisjoint({name, file}) and not (fact and is_known(fact)):
            chosen.append(item)
            continue
        place = zlib.crc32(name.encode()) + seen[name]
        if fact and file in TOGETHER:
            place = int(fact.rpartition(" ")[2])  # the number of the lesson
        if place % N_TURNS == turn % N_TURNS:
            chosen.append(item)
        seen[name] += 1
    return chosen


def needs_compiler(nodeid):
    """Whether a test may do something else where the compiler for GPUs is installed."""
    return nodeid.startswith(COMPILER)


def _file(nodeid):
    return nodeid.partition("::")[0].removeprefix("tests/")
