//! The published form of outcomes: names and values of observables.

use std::collections::BTreeMap;

use litmus::{Observable, Outcome, ScalarType, Test, Value};
use serde_json::Number;

/// A published outcome: values by name, with names as conditions write them (`P1:r0`, `x`).
pub type State = BTreeMap<String, Number>;

/// Converts `outcome` to its published form. Values of signed types are signed, all others unsigned.
pub fn state_from_outcome(test: &Test, observables: &[Observable], outcome: &Outcome) -> State {
    observables
        .iter()
        .zip(&outcome.0)
        .map(|(observable, value)| {
            (test.observable_name(*observable), to_number(*value, test.observable_type(*observable)))
        })
        .collect()
}

/// Formats an outcome on one line in the order of the observables: `P0:r0=1 P1:r0=0 x=2`.
pub fn format_outcome(test: &Test, observables: &[Observable], outcome: &Outcome) -> String {
    let words: Vec<String> = observables
        .iter()
        .zip(&outcome.0)
        .map(|(observable, value)| {
            format!(
                "{}={}",
                test.observable_name(*observable),
                to_number(*value, test.observable_type(*observable))
            )
        })
        .collect();
    words.join(" ")
}

/// Formats a published outcome on one line.
pub fn format_state(state: &State) -> String {
    let words: Vec<String> = state.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(" ")
}

fn to_number(value: Value, scalar: ScalarType) -> Number {
    match scalar {
        ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
            value.to_signed(scalar).into()
        }
        _ => value.0.into(),
    }
}
