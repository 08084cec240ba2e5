//! Texts of shaders: words and comments of every language, and WGSL compiled by naga as a library.

pub mod scan;
pub mod wgsl;
