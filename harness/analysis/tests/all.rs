//! Integration tests of the engines and their answers, linked as one program. Helper modules are last.

mod answers;
mod chosen_inputs;
mod findings;
mod grids;
mod kernels;
mod limits;
mod outcomes;
mod peers;
mod refused;
mod suspicion;
mod transformations;

mod derivation;
