//! The machine text of AMD's GPUs, and what it can do to memory.
