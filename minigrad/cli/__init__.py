"""The command `minigrad`: each command is a few lines on top of the grader and the course."""
