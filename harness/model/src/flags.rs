//! The flags that executions raise.

use litmus::Undefinedness;

use crate::cat::{Axiom, CompiledModel};

/// The flags that an execution raises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// The execution races.
    pub(crate) race: bool,
    /// The execution is undefined as a whole.
    pub(crate) undefined: bool,
    /// The execution reads an undefined initial value.
    pub(crate) uninitialised: bool,
}

impl Flags {
    /// The flag of an execution that is undefined as a whole; every flag except these two is a race.
    pub(crate) const UNDEFINED: &'static str = "undefined-execution";
    /// The flag that every model has for tests with undefined initial values.
    pub(crate) const UNINITIALISED: &'static str = "uninitialised-read";

    /// Adds the flag of an axiom.
    pub(crate) fn raise_axiom(&mut self, axiom: &Axiom) {
        match axiom.name.as_deref() {
            Some(Flags::UNDEFINED) => self.undefined = true,
            Some(Flags::UNINITIALISED) => self.uninitialised = true,
            _ => self.race = true,
        }
    }

    pub(crate) fn add(&mut self, other: Flags) {
        self.race |= other.race;
        self.undefined |= other.undefined;
        self.uninitialised |= other.uninitialised;
    }

    /// Returns true if the execution races or is undefined as a whole.
    pub(crate) fn has_race(&self) -> bool {
        self.race || self.undefined
    }

    /// Returns true if `other` has a flag that `self` lacks.
    pub(crate) fn lacks_any_of(self, other: Flags) -> bool {
        other.race && !self.race
            || other.undefined && !self.undefined
            || other.uninitialised && !self.uninitialised
    }

    /// Returns the level of undefinedness if the model defines levels; `None` also if it is unknown.
    pub(crate) fn undefinedness(self, plan: &CompiledModel, complete: bool) -> Option<Undefinedness> {
        let has_levels = plan.axioms.iter().any(|a| a.is_flag && a.name.as_deref() == Some(Flags::UNDEFINED));
        match self {
            _ if !has_levels => None,
            Flags { undefined: true, .. } => Some(Undefinedness::Program),
            Flags { race: true, .. } if complete => Some(Undefinedness::Value),
            _ => None,
        }
    }
}
