//! Integration tests of entry points and their inputs, linked as one program.

mod inputs;
mod sampler;
