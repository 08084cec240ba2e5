//! The tests of the language, in one program: a file a subject, helpers last.

mod calls;
mod corpus;
mod cts;
mod embedded;
mod hsa;
mod khronos;
mod lattice;
mod parse;
mod peers;
mod round_trip;
