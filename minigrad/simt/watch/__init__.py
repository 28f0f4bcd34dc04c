"""Memory that is watched: who read and wrote which byte, races, wrong addresses, leaks."""
