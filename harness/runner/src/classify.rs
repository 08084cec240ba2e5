//! Who counts the outcomes: the host, or the device by kernels of its own, and what decides that.

use plan::Capabilities;
use serde::{Deserialize, Serialize};
use shaders::Program;
use shaders::classify::{self, Helper, RowTable};

use crate::count::Counter;
use crate::draw::Bounds;
use crate::run::Settings;

/// Who counts the outcomes of a dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Classify {
    /// The host reads the memory of every dispatch: cheapest where host and device are one processor.
    #[default]
    Host,
    /// The device counts and makes its memory ready, and the host reads the counters. It reads the memory itself where
    /// the device saw anything that was not expected, and of the first and of drawn dispatches, to compare.
    Device,
    /// Both count every dispatch, and are compared.
    Both,
}

/// What a [`shaders::ResultSlot::Done`] holds.
pub(crate) const DONE: u32 = 0x600d_600d;
/// What result memory is filled with unless the test may show it.
pub(crate) const POISON: u32 = 0xa7c5_3d91;
/// One dispatch in so many is counted by the host as well.
pub(crate) const COMPARED: u32 = 64;
/// Invocations of a workgroup of the counting kernels.
const WORKGROUP_SIZE: u32 = 256;
/// Instances that an invocation sees where a dispatch is as large as can be.
const EACH: u64 = 8;
/// Workgroups at most: more than any device runs at once.
const MAX_WORKGROUPS: u64 = 4096;
/// Counters at most, where every round has its own.
const MAX_COUNTERS: u64 = 1 << 20;

/// How a device counts the outcomes of a program.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    pub table: RowTable,
    /// Makes memory ready.
    pub reset: Helper,
    /// Counts.
    pub count: Helper,
    /// Words of all counters, behind which come the receipts of both kernels.
    pub counters: u64,
    /// Workgroups of both.
    pub workgroups: u32,
    /// The host counts every dispatch as well.
    pub always_compared: bool,
}

impl Classifier {
    /// A classifier for rows made of `numbers`.
    ///
    /// # Errors
    /// Why the device cannot count.
    pub fn new(
        counter: &Counter,
        program: &Program,
        capabilities: &Capabilities,
        bounds: &Bounds,
        (numbers, rounds): (&[u32], u32),
        classify: Classify,
    ) -> Result<Classifier, String> {
        if !capabilities.memory_model {
            return Err("the device lacks vulkanMemoryModel".into());
        }
        if program.hosts.is_some() {
            return Err("threads of the host report to the host".into());
        }
        if !program.apart().is_empty() {
            return Err("its locations lie in two buffers".into());
        }
        if counter.shares_words() {
            return Err("components of its vectors share a word".into());
        }
        let in_image = program.in_image();
        let table = counter.table(numbers, &in_image);
        let table =
            table.ok_or_else(|| format!("its outcomes have more than {} rows", classify::MAX_ROWS))?;
        let by_round = counter.is_batching();
        let counters = u64::from(table.counters()) * if by_round { u64::from(rounds) } else { 1 };
        if counters > MAX_COUNTERS || 4 * counters > capabilities.max_storage_buffer_bytes {
            return Err("its outcomes have too many rows for counters of every round".into());
        }
        let workgroup_size = WORKGROUP_SIZE.min(capabilities.max_workgroup_invocations).max(1);
        let most = bounds.result_words / u64::from(bounds.slots.max(1));
        let workgroups = most.div_ceil(u64::from(workgroup_size) * EACH);
        let workgroups =
            workgroups.clamp(1, MAX_WORKGROUPS.min(capabilities.max_workgroups.max(1).into())) as u32;
        let memory = classify::CountedMemory {
            lanes: bounds.lanes,
            slots: bounds.slots,
            storage_words: bounds.storage_words,
            initial: program.initial.clone(),
            done: counter.done_slots(),
            by_round,
            workgroup_size,
            workgroups,
            first_receipt: u32::try_from(counters).unwrap_or(u32::MAX),
            device_scope: capabilities.device_scope,
        };
        Ok(Classifier {
            reset: classify::reset(&memory),
            count: classify::count(&memory, &table),
            table,
            counters,
            workgroups,
            always_compared: classify == Classify::Both,
        })
    }

    /// Words of the buffer of the counters.
    pub fn words(&self) -> u64 {
        self.counters + self.receipts()
    }

    fn receipts(&self) -> u64 {
        2 * u64::from(self.workgroups)
    }

    /// The counters among the words of their buffer, where every workgroup of both kernels has left this receipt there, once.
    pub fn received<'a>(&self, words: &'a [u32], receipt: u32) -> Option<&'a [u32]> {
        let (counters, receipts) = words.split_at_checked(usize::try_from(self.counters).ok()?)?;
        let all = receipts.len() as u64 >= self.receipts() && receipts.iter().all(|found| *found == receipt);
        all.then_some(counters)
    }
}

/// Numbers that instances of the test are expected to show, each once.
pub(crate) fn numbers(program: &Program, plausible: &[u32]) -> Vec<u32> {
    let initial = program.initial.iter().flat_map(|bits| words_of(*bits));
    let initial = initial.filter(|_| plausible.is_empty());
    let mut numbers: Vec<u32> = plausible.iter().copied().chain(initial).chain([0, 1]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The words of what a storage holds, the low one first.
pub(crate) fn words_of(bits: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (bits >> shift) as u32)
}

/// How the device counts, where it is to.
pub(crate) fn classifier(
    counter: &Counter,
    program: &Program,
    capabilities: &Capabilities,
    bounds: &Bounds,
    settings: &Settings,
) -> Result<Option<Classifier>, String> {
    let stress = &settings.stress;
    if stress.classify == Classify::Host {
        return Ok(None);
    }
    let numbers = numbers(program, &settings.plausible);
    let rows = (numbers.as_slice(), stress.rounds.1);
    Classifier::new(counter, program, capabilities, bounds, rows, stress.classify).map(Some)
}

/// A word that no instance of the test may show.
pub(crate) fn poison(program: &Program, plausible: &[u32]) -> u32 {
    let initial = |word: u32| program.initial.iter().any(|bits| words_of(*bits).contains(&word));
    let taken = |word: u32| word == DONE || plausible.contains(&word) || initial(word);
    // Steps of an odd number reach every word, so that one that is free is found.
    std::iter::successors(Some(POISON), |word| Some(word.wrapping_add(0x9e37_79b9)))
        .find(|word| !taken(*word))
        .unwrap_or(POISON)
}

#[cfg(test)]
mod tests;
