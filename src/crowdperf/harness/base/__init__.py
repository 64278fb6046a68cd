"""What all of the harness stands on: errors, tensors, and what a backend, model, data set and score are."""
