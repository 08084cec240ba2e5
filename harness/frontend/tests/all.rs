//! The tests of what reads shaders, in one program: a file a subject, helpers last.

mod answers;
mod findings;
mod grids;
mod kernels;
mod outcomes;
mod peers;
mod refused;
