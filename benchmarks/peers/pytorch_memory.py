"""How many bytes PyTorch holds in a training step, counted in two ways."""

import torch


def state_bytes(optimizer):
    """Bytes of the optimizer's state."""
    values = [v for s in optimizer.state.values() for v in s.values() if v is not None]
    return sum(v.nbytes for v in values)


def kept(step, batch, parameters, optimizer):
    """Activations, gradients and optimizer state, all at once.

    Activations are the storages that the graph saves, each once; parameters and the batch,
    which the user holds, are not counted.
    """
    users = {t.untyped_storage().data_ptr() for t in (*batch, *parameters)}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in users:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        step()
    return sum(saved.values()) + sum(p.nbytes for p in parameters) + state_bytes(optimizer)


def allocated(step, optimizer):
    """The allocator's peak in a step, and the optimizer's state; None if it cannot be asked."""
    try:
        from torch._C._profiler import _EventType
    except ImportError:
        return None
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], profile_memory=True) as profile:
        step()
    changes, events = [], list(profile.profiler.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        events.extend(event.children)
        if event.tag == _EventType.Allocation:
            changes.append((event.start_time_ns, event.extra_fields))
    live, now, peak = {}, 0, 0
    for _, change in sorted(changes, key=lambda c: c[0]):
        if change.alloc_size > 0:
            live[change.ptr] = change.alloc_size
            now += change.alloc_size
        else:  # what was there before the step is not ours to subtract
            now -= live.pop(change.ptr, 0)
        peak = max(peak, now)
    return peak + state_bytes(optimizer)
