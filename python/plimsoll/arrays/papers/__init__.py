"""The published results, run on the modelled arrays as a permanent test of the model."""
