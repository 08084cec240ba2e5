//! Placeholder.

pub mod cat;
pub mod matrix;
