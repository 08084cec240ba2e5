//! Counts outcomes: converts the result words of many instances to a histogram, without an allocation per
//! instance.

mod rows;

use std::collections::{BTreeMap, HashMap};

use litmus::{Batches, Histogram, Observable, Outcome, ScalarType, Test, Value};
use shaders::{Parameters, Program, ResultSlot};

use crate::error::Cause;
use crate::readback::LocationWord;

#[cfg(test)]
pub(crate) use rows::RowCounts;

/// Instances whose keys are computed together.
const BLOCK: usize = 512;
/// Bits of a key. The table of all keys fits into a processor's second-level cache.
const KEY_BITS: u32 = 14;
/// The number of keys that a block is compared with in one pass.
const COMMON_KEYS: usize = 4;
/// The maximum number of distinct rare rows, which bounds the memory if a device returns noise.
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
    /// Position and width in the key. A value with more bits takes the slow path.
    shift: u32,
    bits: u32,
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter {
    columns: Vec<ValueColumn>,
    /// Slots that contain [`Parameters::done`], or its complement if a loop reached its bound.
    done_slots: Vec<usize>,
    /// Words of a unit of location memory.
    storage_words: usize,
    /// Instances with a loop that reached its bound.
    unresolved: u64,
    /// Complete instances that exceed the limit on rare rows.
    unrecorded: u64,
    slots: usize,
    observables: usize,
    key_counts: Vec<u64>,
    /// Complete rows with values too large for a key, in column order.
    rare_rows: HashMap<Vec<u32>, u64>,
    /// Result words of instances with a wrong end mark.
    unexpected: BTreeMap<Vec<u32>, u64>,
    row: Vec<u32>,
    /// Recent common keys, all different; see [`Counter::count_common_keys`].
    common: [u32; COMMON_KEYS],
    instances: u64,
    batching: Option<Batching>,
}

/// The number of batches that showed each outcome. A batch is one round, if the instances of a round share
/// random choices.
#[derive(Clone, Debug)]
struct Batching {
    /// Rounds before this dispatch.
    rounds_before: u64,
    /// Instances of a round of this dispatch.
    round_size: usize,
    /// For each key: the last batch that showed it (from 1), and the number of such batches.
    key_batches: Vec<(u64, u64)>,
    /// The same for rows without a key.
    rare_batches: HashMap<Vec<u32>, (u64, u64)>,
}

impl Batching {
    fn new() -> Batching {
        Batching {
            rounds_before: 0,
            round_size: 1,
            key_batches: vec![(0, 0); 1 << KEY_BITS],
            rare_batches: HashMap::new(),
        }
    }

    fn batch_of(&self, instance: usize) -> u64 {
        self.rounds_before + (instance / self.round_size) as u64 + 1
    }

    fn record(cell: &mut (u64, u64), batch: u64) {
        if cell.0 != batch {
            *cell = (batch, cell.1 + 1);
        }
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
            // The low word comes first; `outcome_of_words` combines the two in this order.
            for high in [false, true].into_iter().take(1 + usize::from(wide)) {
                let source = find_word(test, program, *observable, high)
                    .ok_or_else(|| Cause::Kernel(format!("no `{}`", test.observable_name(*observable))))?;
                sources.push((source, position, scalar, high));
            }
        }
        // All columns get an equal part of the key. If there are more columns than bits, the last
        // ones get none, and any value except 0 in them takes the slow path.
        let bits = (KEY_BITS / u32::try_from(sources.len()).unwrap_or(u32::MAX).max(1)).clamp(1, 8);
        let mut columns = Vec::new();
        let mut shift = 0;
        for (source, observable, scalar, high) in sources {
            // Result words are integers; location memory has the representation of the device.
            let stored = matches!(source, InstanceWord::Storage(_));
            let float = stored && scalar == ScalarType::F32;
            let bits = bits.min(KEY_BITS - shift);
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
                shift,
                bits,
            });
            shift += bits;
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
            slots: program.results.len(),
            observables: observables.len(),
            key_counts: vec![0; 1 << KEY_BITS],
            common: std::array::from_fn(|key| key as u32),
            batching: shares_choices.then(Batching::new),
            ..Counter::default()
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

    /// Returns the instances that exceed the limit of [`MAX_ROWS`] rare rows; [`Counter::instances`] includes
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
        let mut keys = [0u32; BLOCK];
        let mut odd = [0u32; BLOCK];
        for start in (0..count).step_by(BLOCK) {
            let length = BLOCK.min(count - start);
            let (keys, odd) = (&mut keys[..length], &mut odd[..length]);
            self.make_keys(dispatched, start, keys, odd);
            // An instance with a nonzero `odd` has a wrong end mark or a value too wide for the
            // key, so its key means nothing.
            if has_nonzero(odd) || !self.count_common_keys(keys) {
                for (offset, (key, odd)) in keys.iter().zip(odd.iter()).enumerate() {
                    match self.key_counts.get_mut(*key as usize) {
                        Some(cell) if *odd == 0 => *cell += 1,
                        _ => self.count_row(dispatched, start + offset),
                    }
                }
            }
            if let Some(batching) = &mut self.batching {
                // Instances without a key are noted in `count_row`.
                for (offset, (key, _)) in
                    keys.iter().zip(odd.iter()).enumerate().filter(|(_, (_, odd))| **odd == 0)
                {
                    let batch = batching.batch_of(start + offset);
                    if let Some(cell) = batching.key_batches.get_mut(*key as usize) {
                        Batching::record(cell, batch);
                    }
                }
            }
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

    /// Counts a block if all its keys are among the recent common ones; otherwise returns false and counts
    /// nothing.
    ///
    /// Most tests show few outcomes. Comparing a whole block with each of them vectorizes, while incrementing
    /// the same few cells one by one waits for each addition.
    fn count_common_keys(&mut self, keys: &[u32]) -> bool {
        let counts =
            self.common.map(|common| keys.iter().fold(0u32, |sum, key| sum + u32::from(*key == common)));
        if counts.iter().sum::<u32>() as usize == keys.len() {
            for (common, count) in self.common.iter().zip(counts) {
                if let Some(cell) = self.key_counts.get_mut(*common as usize) {
                    *cell += u64::from(count);
                }
            }
            return true;
        }
        // A new key replaces the rarest one for the next block.
        if let Some(new) = keys.iter().find(|key| !self.common.contains(key)) {
            let rarest = (0..).zip(counts).min_by_key(|(_, count)| *count).map_or(0, |(place, _)| place);
            if let Some(place) = self.common.get_mut::<usize>(rarest) {
                *place = *new;
            }
        }
        false
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

    /// Computes the keys of the instances from `start`; `odd` becomes nonzero if a key cannot represent the
    /// instance.
    fn make_keys(&self, dispatched: &DispatchMemory<'_>, start: usize, keys: &mut [u32], odd: &mut [u32]) {
        let DispatchMemory { parameters, instances, results, locations, .. } = *dispatched;
        keys.fill(0);
        odd.fill(0);
        for slot in &self.done_slots {
            for (odd, word) in odd.iter_mut().zip(&results[slot * instances + start..]) {
                // Nonzero if the end mark is wrong.
                *odd |= word ^ parameters.done;
            }
        }
        for column in &self.columns {
            let cells = keys.iter_mut().zip(odd.iter_mut());
            match column.source {
                InstanceWord::Slot(slot) => {
                    for ((key, odd), word) in cells.zip(&results[slot * instances + start..]) {
                        column.add_to_key(key, odd, *word);
                    }
                }
                InstanceWord::Storage(storage) => {
                    let first = unit_index(parameters, start, storage) * self.storage_words + column.word;
                    // The units of one storage in consecutive instances have the distance `stride`.
                    let step = parameters.stride as usize * self.storage_words;
                    let words = locations[first..].iter().step_by(step);
                    for ((key, odd), word) in cells.zip(words) {
                        column.add_to_key(key, odd, column.to_number(*word));
                    }
                }
            }
        }
    }

    /// Counts an instance that no key can represent.
    fn count_row(&mut self, dispatched: &DispatchMemory<'_>, instance: usize) {
        let DispatchMemory { parameters, instances, results, locations, .. } = *dispatched;
        let slot = |number: usize| results[number * instances + instance];
        let is_marked_wrongly = self.done_slots.iter().any(|number| slot(*number) != parameters.done);
        self.row.clear();
        // A thread whose loop reached its bound writes the complement of the mark.
        let gave_up = |number: &usize| slot(*number) == !parameters.done;
        let all_ended =
            self.done_slots.iter().all(|number| slot(*number) == parameters.done || gave_up(number));
        // An instance with a mark that is neither value is unexpected, even if another of its loops
        // reached the bound.
        if all_ended && self.done_slots.iter().any(gave_up) {
            self.unresolved += 1;
            return;
        }
        if is_marked_wrongly {
            self.row.extend((0..self.slots).map(slot));
            if let Some(count) = self.unexpected.get_mut(self.row.as_slice()) {
                *count += 1;
                return;
            }
            // Beyond the limit, the empty row represents all others.
            if self.unexpected.len() >= MAX_ROWS {
                self.row.clear();
            }
            *self.unexpected.entry(self.row.clone()).or_default() += 1;
            return;
        }
        self.row.extend(self.columns.iter().map(|column| match column.source {
            InstanceWord::Slot(number) => slot(number),
            InstanceWord::Storage(storage) => {
                let first = unit_index(parameters, instance, storage) * self.storage_words;
                column.to_number(locations[first + column.word])
            }
        }));
        if let Some(batching) = &mut self.batching
            && (batching.rare_batches.len() < MAX_ROWS
                || batching.rare_batches.contains_key(self.row.as_slice()))
        {
            let batch = batching.batch_of(instance);
            Batching::record(batching.rare_batches.entry(self.row.clone()).or_default(), batch);
        }
        if let Some(count) = self.rare_rows.get_mut(self.row.as_slice()) {
            *count += 1;
        } else if self.rare_rows.len() < MAX_ROWS {
            self.rare_rows.insert(self.row.clone(), 1);
        } else {
            self.unrecorded += 1;
        }
    }

    /// Returns the histogram of complete outcomes.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for (key, count) in (0u32..).zip(&self.key_counts).filter(|(_, count)| **count > 0) {
            histogram.add_count(self.outcome_of_key(key), *count);
        }
        // Sorting gives a stable order; the sums are in an ordered map.
        let mut rows: Vec<_> = self.rare_rows.iter().collect();
        rows.sort_unstable();
        for (row, count) in rows {
            histogram.add_count(self.outcome_of_words(row.iter().copied()), *count);
        }
        histogram
    }

    /// Returns the batches, if the device has any.
    pub fn batches(&self) -> Option<Batches> {
        let batching = self.batching.as_ref()?;
        let mut by_outcome: BTreeMap<Outcome, u64> = BTreeMap::new();
        // Different keys and rows are different outcomes.
        for (key, (_, count)) in (0u32..).zip(&batching.key_batches).filter(|(_, (_, count))| *count > 0) {
            *by_outcome.entry(self.outcome_of_key(key)).or_default() += count;
        }
        let mut rows: Vec<_> = batching.rare_batches.iter().collect();
        rows.sort_unstable();
        for (row, (_, count)) in rows {
            *by_outcome.entry(self.outcome_of_words(row.iter().copied())).or_default() += count;
        }
        Some(Batches { total: batching.rounds_before, by_outcome })
    }

    fn outcome_of_key(&self, key: u32) -> Outcome {
        self.outcome_of_words(self.columns.iter().map(|column| (key >> column.shift) & column.mask()))
    }

    /// Returns the result words of instances with a wrong end mark, with their counts. The empty row represents
    /// all rows beyond the first 4096 different ones.
    pub fn unexpected(&self) -> &BTreeMap<Vec<u32>, u64> {
        &self.unexpected
    }

    fn outcome_of_words(&self, words: impl Iterator<Item = u32>) -> Outcome {
        let mut values = vec![Value::default(); self.observables];
        for (column, word) in self.columns.iter().zip(words) {
            if let Some(value) = values.get_mut(column.observable) {
                let word = u64::from(word);
                let word = if column.is_high_word { value.0 | word << 32 } else { word };
                *value = Value(word).truncate_to(column.scalar);
            }
        }
        Outcome(values)
    }
}

impl ValueColumn {
    fn mask(&self) -> u32 {
        (1 << self.bits) - 1
    }

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

    #[inline]
    fn add_to_key(&self, key: &mut u32, odd: &mut u32, word: u32) {
        *key |= (word & self.mask()) << self.shift;
        // Bits that the key has no room for.
        *odd |= word >> self.bits;
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

/// Returns true if some word is nonzero. No early exit, so that it vectorizes.
fn has_nonzero(words: &[u32]) -> bool {
    words.iter().fold(0, |all, word| all | word) != 0
}

/// Returns true if some word is `wanted`. No early exit within a chunk, so that it vectorizes.
fn contains_word(words: &[u32], wanted: u32) -> bool {
    words.chunks(BLOCK).any(|chunk| chunk.iter().fold(false, |found, word| found | (*word == wanted)))
}

#[cfg(test)]
mod tests {
    use shaders::{KernelConfig, Pipelines};

    use super::*;
    use crate::classify::POISON;

    fn parameters(rounds: u32) -> Parameters {
        Parameters { groups: 1, rounds, poison: POISON, ..Parameters::SINGLE }
    }

    /// Blocks with few outcomes are counted at once and others row by row; together, every instance counts
    /// once.
    #[test]
    fn blocks_of_few_and_many_outcomes_have_equal_counts() {
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
        // For each block, the number of values, and true if some are too large for a key.
        let blocks =
            [(2, false), (2, false), (40, false), (3, false), (1, false), (2, true), (2, false), (90, true)];
        let count = blocks.len() * BLOCK + 77;
        let word = |instance: usize, slot: usize| {
            let (values, large) = blocks.get(instance / BLOCK).copied().unwrap_or((2, false));
            let value = ((instance * 7 + slot * 13) / 3 % values) as u32;
            if large && instance % 97 == slot { 1_000_000 + value } else { value }
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
