"""Lanes and warps in lock-step: values, masks, barriers, shuffles, local memory."""
