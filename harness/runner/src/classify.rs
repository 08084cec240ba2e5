//! Decides whether host or device counts outcomes, and builds the counting kernels.

use plan::Capabilities;
use shaders::classify::{self, BufferRole, ClassifierKernel, RowTable};
use shaders::{Parameters, Program};

use crate::count::Counter;
use crate::counting::CountingPlace;
use crate::dispatch::Execution;
use crate::sampling::KernelLimits;
use crate::settings::RunSettings;

/// The value of a [`shaders::ResultSlot::Done`].
pub(crate) const DONE: u32 = 0x600d_600d;
/// The initial value of result memory, unless the test may produce it.
pub(crate) const POISON: u32 = 0xa7c5_3d91;
/// One in this many dispatches is counted by the host as well.
pub(crate) const COMPARISON_INTERVAL: u32 = 64;
/// Invocations of a workgroup of the counting kernels.
const WORKGROUP_SIZE: u32 = 256;
/// Instances of each invocation in the largest dispatch.
const INSTANCES_PER_INVOCATION: u64 = 8;
/// The maximum number of workgroups, more than any device runs concurrently.
const MAX_WORKGROUPS: u64 = 4096;
/// The maximum number of counters, if every round has its own.
const MAX_COUNTERS: u64 = 1 << 20;

/// The counting kernels of a program.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    pub table: RowTable,
    /// The kernel that resets memory.
    pub reset: ClassifierKernel,
    /// The kernel that counts outcomes.
    pub count: ClassifierKernel,
    /// Words of all counters; the receipts of both kernels follow them.
    pub counters: u64,
    /// Workgroups of each kernel.
    pub workgroups: u32,
    /// Words of the result buffer.
    pub result_words: u64,
    /// Words of the location buffer, and of texels.
    pub location_words: u64,
    /// The host counts every dispatch as well.
    pub always_compared: bool,
}

impl Classifier {
    /// Creates the kernels for rows of `numbers`.
    ///
    /// # Errors
    /// The reason why the device cannot count.
    pub fn new(
        counter: &Counter,
        program: &Program,
        capabilities: &Capabilities,
        bounds: &KernelLimits,
        numbers: &[u32],
        rounds: u32,
        classify: CountingPlace,
    ) -> Result<Classifier, String> {
        if !capabilities.memory_model {
            return Err("the device lacks vulkanMemoryModel".into());
        }
        if program.hosts.is_some() {
            return Err("host threads report to the host".into());
        }
        if !program.separate_storages().is_empty() {
            return Err("its locations are in two buffers".into());
        }
        if counter.shares_words() {
            return Err("components of its vectors share a word".into());
        }
        let in_image = program.image_storages();
        let table = counter.build_table(numbers, &in_image);
        let table =
            table.ok_or_else(|| format!("its outcomes have more than {} rows", classify::MAX_ROWS))?;
        let by_round = counter.is_batching();
        // If instances share random choices, every round has its own counters.
        let counters = u64::from(table.counter_count()) * if by_round { u64::from(rounds) } else { 1 };
        if counters > MAX_COUNTERS || 4 * counters > capabilities.max_storage_buffer_bytes {
            return Err("its outcomes have too many rows for counters of every round".into());
        }
        let workgroup_size = WORKGROUP_SIZE.min(capabilities.max_workgroup_invocations).max(1);
        // The instances of the largest dispatch.
        let max_instances = bounds.result_words / u64::from(bounds.slots.max(1));
        let workgroups = max_instances.div_ceil(u64::from(workgroup_size) * INSTANCES_PER_INVOCATION);
        let workgroups =
            workgroups.clamp(1, MAX_WORKGROUPS.min(capabilities.max_workgroups.max(1).into())) as u32;
        let memory = classify::CountedMemory {
            lanes: bounds.lanes,
            slots: bounds.slots,
            storage_words: bounds.storage_words,
            initial_values: program.initial_values.clone(),
            done_slots: counter.done_slots(),
            by_round,
            workgroup_size,
            workgroups,
            first_receipt: u32::try_from(counters).unwrap_or(u32::MAX),
            device_scope: capabilities.device_scope,
        };
        Ok(Classifier {
            reset: classify::reset_kernel(&memory),
            count: classify::counting_kernel(&memory, &table),
            table,
            counters,
            workgroups,
            result_words: bounds.result_buffer_words(),
            location_words: bounds.location_words(),
            always_compared: classify == CountingPlace::Both,
        })
    }

    /// Words of the counter buffer: the overflow word of both kernels follows the receipts.
    pub fn buffer_words(&self) -> u64 {
        self.counters + self.receipt_count() + 1
    }

    fn receipt_count(&self) -> u64 {
        2 * u64::from(self.workgroups)
    }

    /// Returns the receipt of a helper that reads these salts.
    pub fn expected_receipt(
        &self,
        helper: &ClassifierKernel,
        parameters: &Parameters,
        salt_of: &dyn Fn(BufferRole) -> u32,
    ) -> u32 {
        let words = |role: &BufferRole| match role {
            BufferRole::Results => self.result_words,
            BufferRole::Counters => self.buffer_words(),
            BufferRole::Locations | BufferRole::Texels => self.location_words,
        };
        let length = |role| u32::try_from(words(role)).unwrap_or(u32::MAX);
        let lengths = helper.bindings.iter().map(length);
        let memory: Vec<u32> =
            lengths.chain(helper.salted_buffers.iter().map(|role| salt_of(*role))).collect();
        parameters.receipt(helper.identity, &memory)
    }

    /// Returns the counters if every workgroup of both kernels left its receipt exactly once.
    ///
    /// # Errors
    /// If the driver did not execute the two dispatches as requested.
    pub fn verify_receipts<'a>(
        &self,
        words: &'a [u32],
        parameters: &Parameters,
        salt_of: &dyn Fn(BufferRole) -> u32,
    ) -> Result<&'a [u32], Execution> {
        let (counters, receipts) =
            usize::try_from(self.counters).ok().and_then(|count| words.split_at_checked(count)).unzip();
        let (Some(counters), Some([receipts @ .., overflow])) = (counters, receipts) else {
            return Err(Execution::Incomplete);
        };
        let [reset, count] =
            [&self.reset, &self.count].map(|helper| self.expected_receipt(helper, parameters, salt_of));
        let all_equal = |own: &[u32], receipt| {
            own.len() == self.workgroups as usize && own.iter().all(|found| *found == receipt)
        };
        let halves = receipts.split_at_checked(self.workgroups as usize);
        let all = halves.is_some_and(|(resets, counts)| all_equal(resets, reset) && all_equal(counts, count));
        match (all, *overflow) {
            (true, 0) => Ok(counters),
            (true, outside) => Err(Execution::Excessive { outside: outside.into() }),
            (false, _) => Err(Execution::Incomplete),
        }
    }
}

/// Returns the values that instances of the test are expected to show, without duplicates.
pub(crate) fn expected_values(program: &Program, plausible: &[u32]) -> Vec<u32> {
    let initial = program.initial_values.iter().flat_map(|bits| split_into_words(*bits));
    let initial = initial.filter(|_| plausible.is_empty());
    let mut numbers: Vec<u32> = plausible.iter().copied().chain(initial).chain([0, 1]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Splits the value of a storage into words, the low one first.
pub(crate) fn split_into_words(bits: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (bits >> shift) as u32)
}

/// Returns the counting kernels, if the stress requires them.
pub(crate) fn build_classifier(
    counter: &Counter,
    program: &Program,
    capabilities: &Capabilities,
    bounds: &KernelLimits,
    settings: &RunSettings,
) -> Result<Option<Classifier>, String> {
    let stress = &settings.stress;
    if stress.classify == CountingPlace::Host {
        return Ok(None);
    }
    let numbers = expected_values(program, &settings.plausible_words);
    let rounds = stress.rounds.1;
    Classifier::new(counter, program, capabilities, bounds, &numbers, rounds, stress.classify).map(Some)
}

/// Returns a word that no instance of the test can show.
pub(crate) fn choose_poison(program: &Program, plausible: &[u32]) -> u32 {
    let initial =
        |word: u32| program.initial_values.iter().any(|bits| split_into_words(*bits).contains(&word));
    let taken = |word: u32| word == DONE || plausible.contains(&word) || initial(word);
    // Steps of an odd size reach every word, so that the search finds a free one.
    std::iter::successors(Some(POISON), |word| Some(word.wrapping_add(0x9e37_79b9)))
        .find(|word| !taken(*word))
        .unwrap_or(POISON)
}

#[cfg(test)]
mod tests;
