//! Plans on the simulated GPU.
