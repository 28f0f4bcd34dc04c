"""The lines of a wrapper for what a step leaves behind, and for what it returns."""

from typing import Any

from minigrad.compiler.program.program import ARGUMENT
from minigrad.compiler.trace.pullback import kept_array
from minigrad.compiler.trace.structure import Output
from minigrad.ops.operands import InferenceVariable
from minigrad.tape.variable import Variable


class EffectLines:
    """A part of `wrapper.Wrapper`, whose attributes it uses."""

    b: Any
    device: Any
    plan: Any
    capture: Any
    lines: list
    made: set
    reused: list
    _constant: Any
    _copied: Any
    _leaf: Any
    storage_of: Any

    def _effects(self):
        """What is left behind when the step has run to its end."""
        lines = []
        for k in self._copied():
            lines.append(
                f"r{k} = {self._constant(self.device.convert)}(r{self._copied()[k]}, r{k}.dtype)"
            )
        lines += self._donations()
        if self.capture.random_count:
            lines.append(f"generator.counter += {self.capture.random_count}")
        for effect in self.capture.grads:
            if effect.after is None:
                value = "None" if effect.before is not None or effect.is_set else None
            elif effect.after.kind == "captured" and effect.after.variable is effect.before:
                value = None
            else:
                value = self._output(effect.after, lines)
            if value and effect.after and effect.after.index in self.reused:
                k = effect.after.index
                made = lines.pop()
                lines += [
                    f"if g{k} is None:",
                    f"    {made}",
                    f"    {self._leaf(effect)}._grad = q{k}",
                ]
            elif value:
                lines.append(f"{self._leaf(effect)}._grad = {value}")
        for k, flag in self.capture.flags.items():
            lines.append(f"v{self.b.members[k].number}._requires_grad = {flag}")
        for action, when in self.capture.actions:
            if when == "after":
                lines.append(f"{self._constant(action)}()")
        return lines or ["pass"]

    def _donations(self):
        lines, taken = [], {v.index: k for k, v in self.plan.taken.items()}
        name = self._constant(self.b.name)
        for k in self.b.donated:
            n = self.b.groups[k].number
            if k in taken:
                ref = self.plan.results[taken[k]]
                shape = self._constant(ref.shape)
                lines.append(f"r{taken[k]} = taken(s{n}, t{n}, {shape}, {name}, place)")
            elif self.b.returns(k):
                lines.append(f"m{n} = moved(s{n}, {name}, place)")
                lines.append(
                    f"x{n} = m{n} if x{n}.shape == m{n}.shape else "
                    f"m{n}.view(x{n}.shape, x{n}.strides, 0)"
                )
                lines.append(f"v{n} = type(v{n})(x{n}, name=v{n}.name)")
            else:
                lines.append(f"spend(s{n}, {name}, place)")
        return lines

    # -- results -------------------------------------------------------------------------------

    def _output(self, output, lines):
        """The name of an Output's Variable or number, made in `lines` if need be."""
        if output.kind == "argument":
            return f"v{self.b.members[output.index].number}"
        if output.kind == "captured":
            return self._constant(output.variable)
        k = output.index
        if output.is_number:
            return self._number(k)
        if k not in self.made:
            self.made.add(k)
            kind = self._constant(InferenceVariable if output.is_inferred else Variable)
            lines.append(
                f"q{k} = new({kind}); q{k}.array = r{k}; q{k}._requires_grad = False; "
                f"q{k}.node = None"
            )
        return f"q{k}"

    def _link(self):
        """The lines that give results the node of this call; see `pullback.Link`."""
        link = self.capture.link
        if link is None:
            return
        members = self.b.members
        edges = [
            f"v{members[e].number}.node or v{members[e].number}"
            if isinstance(e, int)
            else self._constant(e)
            for e in link.edges
        ]
        kept = [f"r{k}" if isinstance(k, int) else self._kept(k) for k in link.kept]
        variables = [f"q{k}" for k in link.outputs]
        parts = [f"({''.join(f'{x}, ' for x in xs)})" for xs in (variables, edges, kept)]
        contexts = "None" if self.capture.contexts is None else "contexts"
        drawn = f"(generator.seed, generator.counter - {self.capture.random_count}, {contexts})"
        self.lines.append(f"{self._constant(link.attach)}({', '.join(parts)}, {drawn})")

    def _kept(self, value):
        """What is kept of an argument, or of captured memory."""
        keep = self._constant(kept_array)
        if value.kind == ARGUMENT and not self.b.groups[value.index].is_fixed:
            group = self.b.groups[value.index]
            n = group.number
            return f"{keep}(x{n}, {value.size}, x{n}.offset + {group.low})"
        is_fixed, storage = self.storage_of(value)
        return f"{keep}({self._constant(storage) if is_fixed else storage}, {value.size}, 0)"

    def _number(self, k):
        """The text of a result as a Python number."""
        return f"ndarray(r{k}).item()"

    def _tree(self, tree):
        """What the step returns, as an expression."""
        if isinstance(tree, Output):
            return self._output(tree, self.lines)
        if isinstance(tree, dict):
            inner = ", ".join(f"{self._constant(k)}: {self._tree(v)}" for k, v in tree.items())
            text = f"{{{inner}}}"
            return text if type(tree) is dict else f"{self._constant(type(tree))}({text})"
        if isinstance(tree, list):
            return f"[{', '.join(map(self._tree, tree))}]"
        if isinstance(tree, tuple):
            inner = "".join(f"{self._tree(x)}, " for x in tree)
            if hasattr(tree, "_fields"):
                return f"{self._constant(type(tree))}({inner})"
            return f"({inner})"
        return self._constant(tree)
