"""Places where other code may do an optimizer's work, for lessons. None: the engine's own.

`hooks` is thread-local: what one thread sets, another does not see. Whoever sets a hook sets it
back.
"""

import threading


class Hooks(threading.local):
    """The hooks of this thread.

    update: called by `optimizer.step()` once per parameter that has a gradient, instead of the
        fused kernels, as

            update(algorithm, values, gradient, state, hyperparameters)

        algorithm: the name of the optimizer's class, 'SGD' or 'Adam' for two.
        values, gradient: NumPy arrays (n,) in the parameter's dtype: flat copies.
        state: {name: flat copy (n,)} of this parameter's state, zeros at first, under the names of
            `optimizer.state`; for Adam and AdamW also 'step', an int, 1 at the first call.
        hyperparameters: {name: number, pair or bool} of the parameter's group, as in the signature
            of the optimizer.

        It writes the new values into `values` and `state` in place; what it returns is not used.
        The optimizer copies both back. An update with an attribute `algorithms` is called for
        these alone; the kernels do the others.

    clip_grad_norm_: called by `optim.clip_grad_norm_` as

            clip_grad_norm_(gradients, max_norm) -> norm

        gradients: a list of NumPy arrays (n,), flat copies, to be changed in place and copied back.
        norm: the number that `optim.clip_grad_norm_` then returns.
    """

    update = None
    clip_grad_norm_ = None


hooks = Hooks()
