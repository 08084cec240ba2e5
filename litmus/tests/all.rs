//! The tests of the crate, linked as one program. Helper modules are last.

mod calls;
mod corpus;
mod cts;
mod embedded;
mod hsa;
mod khronos;
mod lattice;
mod outcome;
mod overlap;
mod parse;
mod peers;
mod round_trip;
mod similar;
mod suite;
mod table;
