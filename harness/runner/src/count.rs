//! Counts outcomes: converts the result words of many instances to a histogram.
//!
//! A *row* is the list of an instance's values. Rows are counted in one table; only a row that is new there is
//! allocated.

mod rows;

use std::collections::BTreeMap;

use litmus::{Batches, Histogram, Observable, Outcome, ScalarType, Test, Value};
use rustc_hash::FxHashMap;
use shaders::{Parameters, Program, ResultSlot};

use crate::error::Cause;
use crate::readback::LocationWord;

#[cfg(test)]
pub(crate) use rows::RowCounts;

/// The number of words that are searched for poison at once.
const CHUNK: usize = 512;
/// The maximum number of distinct rows, which bounds the memory if a device returns noise.
const MAX_ROWS: usize = 4096;

/// The position of a word of an instance.
#[derive(Clone, Copy, Debug)]
enum InstanceWord {
    /// The index of the result slot.
    Slot(usize),
    /// The index of the storage.
    Storage(usize),
}

/// A word of each instance that contains a value of the outcome.
#[derive(Clone, Copy, Debug)]
struct ValueColumn {
    source: InstanceWord,
    /// Index in the outcome.
    observable: usize,
    scalar: ScalarType,
    /// The high word of a 64-bit value.
    is_high_word: bool,
    /// For a storage, the index of the word in its unit.
    word: usize,
    /// Mask and shift of the value, if components of a vector share the word.
    bit_field: Option<(u32, u32)>,
    /// The word is a floating-point number.
    is_float: bool,
}

/// The counts of a row.
#[derive(Clone, Copy, Debug, Default)]
struct RowTally {
    instances: u64,
    /// The last batch that showed it, from 1.
    last_batch: u64,
    /// The number of batches that showed it.
    batches: u64,
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    columns: Vec<ValueColumn>,
    /// Slots that contain [`Parameters::done`], or its complement if a loop reached its bound.
    done_slots: Vec<usize>,
    /// Words of a unit of location memory.
    storage_words: usize,
    /// Instances with a loop that reached its bound.
    unresolved: u64,
    /// Complete instances that exceed the limit on rows.
    unrecorded: u64,
    slots: usize,
    observables: usize,
    /// Complete rows, in column order.
    rows: FxHashMap<Vec<u32>, RowTally>,
    /// Result words of instances with a wrong end mark.
    unexpected: BTreeMap<Vec<u32>, u64>,
    instances: u64,
    batching: Option<Batching>,
}

/// The numbering of batches. A batch is one round, if the instances of a round share random choices.
#[derive(Clone, Copy, Debug, Default)]
struct Batching {
    /// Rounds before this dispatch.
    rounds_before: u64,
    /// Instances of a round of this dispatch.
    round_size: usize,
}

impl Batching {
    /// Returns the number of an instance's batch, from 1.
    fn batch_of(self, instance: usize) -> u64 {
        self.rounds_before + (instance / self.round_size.max(1)) as u64 + 1
    }
}

/// The instances of a dispatch with unwritten words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwritten {
    /// Instances with at least one unwritten word.
    pub instances: u64,
    /// Instances among them with a written word.
    pub partly_written: u64,
}

impl Unwritten {
    /// A dispatch that is discarded as a whole.
    pub fn whole_dispatch(instances: u64) -> Unwritten {
        Unwritten { instances, partly_written: 0 }
    }
}

/// The memory of one finished dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchMemory<'a> {
    pub parameters: &'a Parameters,
    pub instances: usize,
    pub results: &'a [u32],
    /// The location buffer; empty if no location is part of the outcome.
    pub locations: &'a [u32],
    /// The location buffer is a copy whose destination held poison.
    pub is_copied: bool,
}

impl Counter {
    /// Creates a counter for the outcomes of `test` as `program` reports them.
    ///
    /// If `shares_choices`, the instances of a round are not independent, so that rounds are counted as batches.
    ///
    /// # Errors
    /// [`Cause::Kernel`] if the program does not report a value of the outcome.
    pub fn new(test: &Test, program: &Program, shares_choices: bool) -> Result<Counter, Cause> {
        let observables = test.observables();
        let mut sources = Vec::new();
        for (position, observable) in observables.iter().enumerate() {
            let scalar = test.observable_type(*observable);
            let wide = scalar.bits() == 64;
            // The low word comes first; `outcome_of_row` combines the two in this order.
            for high in [false, true].into_iter().take(1 + usize::from(wide)) {
                let source = find_word(test, program, *observable, high)
                    .ok_or_else(|| Cause::Kernel(format!("no `{}`", test.observable_name(*observable))))?;
                sources.push((source, position, scalar, high));
            }
        }
        let mut columns = Vec::new();
        for (source, observable, scalar, high) in sources {
            // Result words are integers; location memory has the representation of the device.
            let stored = matches!(source, InstanceWord::Storage(_));
            let float = stored && scalar == ScalarType::F32;
            let place = observables.get(observable).map_or(0, |observable| byte_offset(test, *observable));
            let word = (place / 4) as usize + usize::from(high);
            // Result words and scalar locations have a word each; only components of a narrow
            // vector share one.
            let shared = stored && scalar.bytes() < 4 && is_in_vector(test, observables.get(observable));
            let part = shared.then(|| ((1 << scalar.bits()) - 1, 8 * (place % 4)));
            columns.push(ValueColumn {
                source,
                observable,
                scalar,
                is_high_word: high,
                word,
                bit_field: part,
                is_float: float,
            });
        }
        let is_done = |slot: &ResultSlot| matches!(slot, ResultSlot::Done(_));
        Ok(Counter {
            columns,
            done_slots: (0..)
                .zip(&program.results)
                .filter(|(_, slot)| is_done(slot))
                .map(|(number, _)| number)
                .collect(),
            storage_words: program.storage_words.max(1) as usize,
            unresolved: 0,
            unrecorded: 0,
            slots: program.results.len(),
            observables: observables.len(),
            rows: FxHashMap::default(),
            unexpected: BTreeMap::new(),
            instances: 0,
            batching: shares_choices.then(Batching::default),
        })
    }

    /// Returns true if several values share a word of a storage.
    pub fn shares_words(&self) -> bool {
        self.columns.iter().any(|column| column.bit_field.is_some())
    }

    /// Returns true if outcomes contain values of locations.
    pub fn reads_locations(&self) -> bool {
        !self.location_words().is_empty()
    }

    /// Returns the words of locations that outcomes contain, without duplicates.
    pub fn location_words(&self) -> Vec<LocationWord> {
        let mut words = Vec::new();
        for column in &self.columns {
            if let InstanceWord::Storage(storage) = column.source {
                let word = LocationWord { storage: storage as u32, word: column.word as u32 };
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        words
    }

    /// Returns the result words of an instance.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of counted instances.
    pub fn instances(&self) -> u64 {
        self.instances
    }

    /// Returns the instances that exceed the limit of [`MAX_ROWS`] rows; [`Counter::instances`] includes
    /// them.
    pub fn unrecorded_instances(&self) -> u64 {
        self.unrecorded
    }

    /// Returns the instances in which a loop reached its bound; [`Counter::instances`] includes them.
    pub fn unresolved(&self) -> u64 {
        self.unresolved
    }

    /// Counts a dispatch, unless an instance has unwritten words: then nothing is counted.
    ///
    /// # Errors
    /// [`Cause::Kernel`] if the memory is smaller than the parameters require.
    pub fn count(&mut self, dispatched: &DispatchMemory<'_>) -> Result<Unwritten, Cause> {
        let poison = dispatched.parameters.poison;
        let count = dispatched.instances;
        if dispatched.locations.len() < self.needed_location_words(dispatched) {
            return Err(Cause::Kernel("its location memory is too short".into()));
        }
        let Some(used) = dispatched.results.get(..self.slots * count) else {
            return Err(Cause::Kernel("its result memory is too short".into()));
        };
        // Poison is not a value of the test, so a word with poison was not written. Without a copy, location
        // memory starts with initial values, so only result words show missing writes.
        if contains_word(used, poison) || dispatched.is_copied && self.is_location_poisoned(dispatched) {
            let mut unwritten = Unwritten::default();
            for instance in 0..count {
                let words = (0..self.slots).filter_map(|slot| used.get(slot * count + instance));
                match words.filter(|word| **word == poison).count() {
                    0 if !self.has_poisoned_location(dispatched, instance) => {}
                    all if all > 0 && all == self.slots => unwritten.instances += 1,
                    _ => {
                        unwritten.instances += 1;
                        unwritten.partly_written += 1;
                    }
                }
            }
            return Ok(unwritten);
        }
        let rounds = (dispatched.parameters.rounds as usize).max(1);
        if let Some(batching) = &mut self.batching {
            // Instances are numbered round by round, so that a batch is a contiguous range of them.
            batching.round_size = (count / rounds).max(1);
        }
        let mut row = Vec::with_capacity(self.columns.len().max(self.slots));
        for instance in 0..count {
            self.count_instance(dispatched, instance, &mut row);
        }
        if let Some(batching) = &mut self.batching {
            batching.rounds_before += rounds as u64;
        }
        self.instances += count as u64;
        Ok(Unwritten::default())
    }

    /// Returns true if a location of any instance holds poison.
    fn is_location_poisoned(&self, dispatched: &DispatchMemory<'_>) -> bool {
        (0..dispatched.instances).any(|instance| self.has_poisoned_location(dispatched, instance))
    }

    /// Returns true if a location of the outcome of this instance holds poison.
    fn has_poisoned_location(&self, dispatched: &DispatchMemory<'_>, instance: usize) -> bool {
        let DispatchMemory { parameters, locations, is_copied: copied, .. } = *dispatched;
        copied
            && self.columns.iter().any(|column| match column.source {
                InstanceWord::Storage(storage) => {
                    let first = unit_index(parameters, instance, storage) * self.storage_words;
                    locations.get(first + column.word) == Some(&parameters.poison)
                }
                InstanceWord::Slot(_) => false,
            })
    }

    /// Returns the words of the location buffer that the outcomes of a dispatch need.
    fn needed_location_words(&self, dispatched: &DispatchMemory<'_>) -> usize {
        let DispatchMemory { parameters, instances, .. } = dispatched;
        let last = |column: &ValueColumn| match column.source {
            InstanceWord::Storage(storage) if *instances > 0 => {
                (unit_index(parameters, instances - 1, storage) + 1) * self.storage_words
            }
            _ => 0,
        };
        self.columns.iter().map(last).max().unwrap_or(0)
    }

    /// Counts an instance; `row` is a buffer.
    fn count_instance(&mut self, dispatched: &DispatchMemory<'_>, instance: usize, row: &mut Vec<u32>) {
        let DispatchMemory { parameters, instances, results, locations, .. } = *dispatched;
        let slot = |number: usize| results[number * instances + instance];
        row.clear();
        if self.done_slots.iter().any(|number| slot(*number) != parameters.done) {
            // A thread whose loop reached its bound writes the complement of the mark. An instance with a mark
            // that is neither value is unexpected, even if another of its loops reached the bound.
            let has_ended = |number: &usize| [parameters.done, !parameters.done].contains(&slot(*number));
            if self.done_slots.iter().all(has_ended) {
                self.unresolved += 1;
                return;
            }
            row.extend((0..self.slots).map(slot));
            self.add_unexpected(row, 1);
            return;
        }
        row.extend(self.columns.iter().map(|column| match column.source {
            InstanceWord::Slot(number) => slot(number),
            InstanceWord::Storage(storage) => {
                let first = unit_index(parameters, instance, storage) * self.storage_words;
                column.to_number(locations[first + column.word])
            }
        }));
        let batch = self.batching.map_or(0, |batching| batching.batch_of(instance));
        match self.tally_mut(row) {
            Some(tally) => {
                tally.instances += 1;
                tally.batches += u64::from(tally.last_batch != batch);
                tally.last_batch = batch;
            }
            None => self.unrecorded += 1,
        }
    }

    /// Returns the counts of a row; `None` for a new row beyond the limit.
    fn tally_mut(&mut self, row: &[u32]) -> Option<&mut RowTally> {
        if !self.rows.contains_key(row) && self.rows.len() < MAX_ROWS {
            self.rows.insert(row.to_vec(), RowTally::default());
        }
        self.rows.get_mut(row)
    }

    /// Counts result words with a wrong end mark. Beyond the limit, the empty row represents all others.
    fn add_unexpected(&mut self, row: &[u32], count: u64) {
        let known = self.unexpected.contains_key(row) || self.unexpected.len() < MAX_ROWS;
        let row = if known { row } else { &[] };
        *self.unexpected.entry(row.to_vec()).or_default() += count;
    }

    /// Returns the histogram of complete outcomes.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        // The sums are in an ordered map.
        #[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
        for (row, tally) in &self.rows {
            histogram.add_count(self.outcome_of_row(row), tally.instances);
        }
        histogram
    }

    /// Returns the batches, if the device has any.
    pub fn batches(&self) -> Option<Batches> {
        let batching = self.batching.as_ref()?;
        let mut by_outcome: BTreeMap<Outcome, u64> = BTreeMap::new();
        #[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
        for (row, tally) in &self.rows {
            *by_outcome.entry(self.outcome_of_row(row)).or_default() += tally.batches;
        }
        Some(Batches { total: batching.rounds_before, by_outcome })
    }

    /// Returns the result words of instances with a wrong end mark, with their counts. The empty row represents
    /// all rows beyond the first 4096 different ones.
    pub fn unexpected(&self) -> &BTreeMap<Vec<u32>, u64> {
        &self.unexpected
    }

    fn outcome_of_row(&self, row: &[u32]) -> Outcome {
        let mut values = vec![Value::default(); self.observables];
        for (column, word) in self.columns.iter().zip(row) {
            if let Some(value) = values.get_mut(column.observable) {
                let word = u64::from(*word);
                let word = if column.is_high_word { value.0 | word << 32 } else { word };
                *value = Value(word).truncate_to(column.scalar);
            }
        }
        Outcome(values)
    }
}

impl ValueColumn {
    /// Converts a word of memory to the test's number. A floating-point number that is not an integer keeps
    /// its bits, which no outcome has.
    #[inline]
    fn to_number(self, word: u32) -> u32 {
        if let Some((mask, below)) = self.bit_field {
            return (word >> below) & mask;
        }
        if !self.is_float {
            return word;
        }
        // The cast saturates; comparing the converted bits detects that.
        let number = f32::from_bits(word) as i32;
        if (number as f32).to_bits() == word { number as u32 } else { word }
    }
}

fn byte_offset(test: &Test, observable: Observable) -> u32 {
    match observable {
        Observable::Register(..) => 0,
        Observable::Location(location, component) => {
            u32::from(component) * test.location(location).scalar_type().bytes()
        }
    }
}

/// Returns true if the storage of an observable is a vector.
fn is_in_vector(test: &Test, observable: Option<&Observable>) -> bool {
    match observable {
        Some(Observable::Location(location, _)) => {
            test.location(*location).is_vector() || test.location(test.storage_of(*location)).is_vector()
        }
        Some(Observable::Register(..)) | None => false,
    }
}

/// Returns where the kernels report an observable, or the high word of a 64-bit one.
fn find_word(test: &Test, program: &Program, observable: Observable, high: bool) -> Option<InstanceWord> {
    let target = if high { ResultSlot::High(observable) } else { ResultSlot::Register(observable) };
    let slot = program.results.iter().position(|slot| *slot == target);
    let storage = || {
        let (_, storage) = program.final_values.iter().find(|(known, _)| *known == observable)?;
        let word = byte_offset(test, observable) / 4 + u32::from(high);
        let exists = *storage < program.storages && word < program.storage_words.max(1);
        exists.then_some(InstanceWord::Storage(*storage as usize))
    };
    slot.map(InstanceWord::Slot).or_else(storage)
}

/// Returns the index of the unit of an instance's storage, by the contract of kernels.
pub(crate) fn unit_index(parameters: &Parameters, instance: usize, storage: usize) -> usize {
    parameters.unit_index(instance as u32, storage as u32) as usize
}

/// Returns true if some word is `wanted`. No early exit within a chunk, so that it vectorizes.
fn contains_word(words: &[u32], wanted: u32) -> bool {
    words.chunks(CHUNK).any(|chunk| chunk.iter().fold(false, |found, word| found | (*word == wanted)))
}

#[cfg(test)]
mod tests {
    use shaders::{KernelConfig, Pipelines};

    use super::*;
    use crate::classify::POISON;

    fn parameters(rounds: u32) -> Parameters {
        Parameters { groups: 1, rounds, poison: POISON, ..Parameters::SINGLE }
    }

    /// Every instance counts once, with few outcomes and with many, of small and of large values.
    #[test]
    fn each_instance_is_counted_once() {
        let text = "VULKAN T { x = 0; y = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
                    ld.atom.dv.sc0 r0, x | ld.atom.dv.sc0 r0, y ; exists (P0:r0 == 1)";
        let test = litmus::parse(text, "T").unwrap();
        let config = KernelConfig {
            subgroup_size: 8,
            lanes: 8,
            max_workgroup_invocations: 64,
            ..KernelConfig::MINIMAL
        };
        let program = shaders::compile_program(&test, &config, Pipelines::Merged).unwrap();
        let mut counter = Counter::new(&test, &program, false).unwrap();
        let count = 4_000;
        let word = |instance: usize, slot: usize| {
            let values = [2, 1, 40, 90][instance / 1_000];
            let value = ((instance * 7 + slot * 13) / 3 % values) as u32;
            if instance % 97 == slot { 1_000_000 + value } else { value }
        };
        let results: Vec<u32> =
            (0..2).flat_map(|slot| (0..count).map(move |instance| word(instance, slot))).collect();
        let parameters = parameters(count as u32);
        let dispatched = DispatchMemory {
            parameters: &parameters,
            instances: count,
            results: &results,
            locations: &[],
            is_copied: false,
        };
        let mut expected = Histogram::default();
        for turn in 1..=2 {
            assert_eq!(counter.count(&dispatched).unwrap(), Unwritten::default());
            for instance in 0..count {
                let values = [0, 1].map(|slot| Value(word(instance, slot).into()));
                expected.add_count(Outcome(values.to_vec()), 1);
            }
            assert_eq!(counter.histogram(), expected);
            assert_eq!(counter.instances, (turn * count) as u64);
            assert!(counter.unexpected().is_empty());
        }
    }
}
