"""The command `minigrad`. Thin: each command is a few lines over the grader and the course."""
