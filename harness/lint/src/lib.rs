//! Rules on modules that need no execution: likely mistakes of synchronization, and validity rules of SPIR-V.

mod rules;

pub use rules::{
    InvalidUse, Lint, LintRule, ValidityRule, awaited_atomics, divergent_barriers, invalid_uses, is_in_loop,
    lint,
};
