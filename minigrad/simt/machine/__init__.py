"""Lanes and warps in lock-step: values, masks, barriers, shuffles, a thread's own memory."""
