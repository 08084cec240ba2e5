//! How values are named and shown: the published form of an outcome.

use std::collections::BTreeMap;

use litmus::{Observable, Outcome, ScalarType, Test, Value};
use serde_json::Number;

/// A published outcome: names as conditions write them (`P1:r0`, `x`) with their values.
pub type State = BTreeMap<String, Number>;

/// The published form of `outcome`. Values of signed types are signed, all others are not.
pub fn state(test: &Test, observables: &[Observable], outcome: &Outcome) -> State {
    observables
        .iter()
        .zip(&outcome.0)
        .map(|(observable, value)| {
            (test.observable_name(*observable), number(*value, test.observable_type(*observable)))
        })
        .collect()
}

/// An outcome on one line, in the order of the observables: `P0:r0=1 P1:r0=0 x=2`.
pub fn line(test: &Test, observables: &[Observable], outcome: &Outcome) -> String {
    let words: Vec<String> = observables
        .iter()
        .zip(&outcome.0)
        .map(|(observable, value)| {
            format!(
                "{}={}",
                test.observable_name(*observable),
                number(*value, test.observable_type(*observable))
            )
        })
        .collect();
    words.join(" ")
}

/// A published outcome on one line.
pub fn text(state: &State) -> String {
    let words: Vec<String> = state.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(" ")
}

fn number(value: Value, scalar: ScalarType) -> Number {
    match scalar {
        ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => value.signed(scalar).into(),
        _ => value.0.into(),
    }
}
