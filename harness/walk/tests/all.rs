//! Integration tests of walks, linked as one program.

mod happens_before;
mod vector_clock;
