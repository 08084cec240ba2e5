//! The storages of a test: their numbers, what they hold at first and at last, and which of them lie apart.

use litmus::{LocationId, Observable, Test};

use crate::kernel::ResultSlot;
use crate::memory::Element;
use crate::variant::{Apart, Variant};

/// The storages of a test that a variant puts apart.
pub(crate) fn apart(test: &Test, variant: Variant) -> Vec<u32> {
    let storages = storages(test);
    let is_guard = |own: &u32| {
        // Vectors are never accessed atomically.
        test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
            instruction.kind.access().is_some_and(|access| {
                let number = storages.numbers.get(usize::from(access.place.location.0));
                access.strength.is_atomic() && number == Some(own)
            })
        })
    };
    let all = 0..storages.count();
    match variant.apart {
        Apart::Nothing => Vec::new(),
        Apart::Payload => all.filter(|number| !is_guard(number)).collect(),
        Apart::Guard => all.filter(is_guard).collect(),
    }
}

/// The storages of a test: distinct memory behind its locations, numbered in the order in which they are first named.
pub(crate) struct Storages {
    storages: Vec<LocationId>,
    /// Number of the storage of each location.
    pub numbers: Vec<u32>,
}

/// Numbers the storages of a test.
pub(crate) fn storages(test: &Test) -> Storages {
    let mut storages: Vec<LocationId> = Vec::new();
    let numbers = (0..test.locations.len())
        .map(|location| {
            let storage = test.storage_of(LocationId(location as u16));
            storages.iter().position(|known| *known == storage).unwrap_or_else(|| {
                storages.push(storage);
                storages.len() - 1
            }) as u32
        })
        .collect();
    Storages { storages, numbers }
}

impl Storages {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.storages.len() as u32
    }

    /// The number of a location's storage.
    pub fn number_of(&self, location: LocationId) -> u32 {
        self.numbers.get(usize::from(location.0)).copied().unwrap_or(0)
    }

    /// What each holds at first, as bits: the first component of a vector lowest.
    pub fn initial(&self, test: &Test) -> Vec<u128> {
        let initial = |storage: &LocationId| {
            let location = test.location(*storage);
            let element = Element::of(location.scalar_type());
            (0..location.components).fold(0, |all, component| {
                let bits = element.bits(test.initial_value(*storage, component));
                all | (u128::from(bits) << (8 * element.bytes() * u32::from(component)))
            })
        };
        self.storages.iter().map(initial).collect()
    }

    /// Storages whose final value belongs to the outcome, unless `results` has it.
    pub fn finals(&self, test: &Test, results: &[ResultSlot]) -> Vec<(Observable, u32)> {
        let number = |location: LocationId| self.numbers.get(usize::from(location.0)).copied().unwrap_or(0);
        let observables = test.observables().into_iter();
        observables
            .filter_map(|observable| match observable {
                Observable::Location(location, _) if !results.contains(&ResultSlot::Register(observable)) => {
                    Some((observable, number(location)))
                }
                _ => None,
            })
            .collect()
    }
}
