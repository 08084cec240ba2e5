//! The storages of a test: their indices, initial and final values, and which are separate.

use litmus::{LocationId, NoEntry, Observable, Table, Test};

use crate::kernel::ResultSlot;
use crate::memory::ElementType;
use crate::rules::Rule;
use crate::variant::{SeparateStorages, Variant};

pub(crate) fn separate_storages(test: &Test, variant: Variant) -> Result<Vec<u32>, Rule> {
    let storages = number_storages(test);
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    let accesses = instructions.filter_map(|instruction| instruction.kind.access());
    // Vectors are never accessed atomically.
    let atomics = accesses.filter(|access| access.strength.is_atomic());
    let guards: Vec<u32> =
        atomics.map(|access| storages.number_of(access.place.location)).collect::<Result<_, _>>()?;
    let all = 0..storages.count();
    Ok(match variant.separate_storages {
        SeparateStorages::None => Vec::new(),
        SeparateStorages::Payload => all.filter(|number| !guards.contains(number)).collect(),
        SeparateStorages::Guard => all.filter(|number| guards.contains(number)).collect(),
    })
}

/// The storages of a test: distinct memory of its locations, in the order of their first names.
pub(crate) struct Storages {
    storages: Vec<LocationId>,
    /// Index of the storage of each location.
    pub numbers: Table<LocationId, u32>,
}

pub(crate) fn number_storages(test: &Test) -> Storages {
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
    /// Returns the number of storages.
    pub fn count(&self) -> u32 {
        self.storages.len() as u32
    }

    /// Returns the index of a location's storage.
    pub fn number_of(&self, location: LocationId) -> Result<u32, NoEntry> {
        self.numbers.get(location).copied()
    }

    /// Returns the initial value of each storage as bits, the first component of a vector lowest.
    pub fn initial_values(&self, test: &Test) -> Vec<u128> {
        let initial = |storage: &LocationId| {
            let location = test.location(*storage);
            let element = ElementType::from_scalar(location.scalar_type());
            (0..location.components).fold(0, |all, component| {
                let bits = element.value_bits(test.initial_value(*storage, component));
                all | (u128::from(bits) << (8 * element.bytes() * u32::from(component)))
            })
        };
        self.storages.iter().map(initial).collect()
    }

    /// Returns the storages with a final value in the outcome that `results` does not contain.
    pub fn final_values(
        &self,
        test: &Test,
        results: &[ResultSlot],
    ) -> Result<Vec<(Observable, u32)>, NoEntry> {
        let mut finals = Vec::new();
        for observable in test.observables() {
            if let Observable::Location(location, _) = observable
                && !results.contains(&ResultSlot::Register(observable))
            {
                finals.push((observable, self.number_of(location)?));
            }
        }
        Ok(finals)
    }
}
