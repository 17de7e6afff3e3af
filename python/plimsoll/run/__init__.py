"""Execute a plan: start the native run, write its folder, go on after a crash."""
