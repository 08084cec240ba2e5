//! Draws the parameters of each dispatch from a seed, within the limits of kernel, device and memory.

mod stress;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shaders::contract::IMAGE_WIDTH;
use shaders::variant::{CarrierStage, ImageForm, WorkgroupInitialization};
use shaders::{Binding, CompiledKernel, ImageBinding, Parameters, Program, StressParameters};

use crate::error::Cause;
use crate::settings::RunSettings;
use crate::stress::{MAX_GROUPS, Pairing, Stress, rendezvous_iterations, rounds_within};
use crate::{graphics_draw, host};

/// The maximum size of location memory in bytes.
const LOCATION_BYTES: u64 = 32 << 20;
/// The maximum size of result memory in bytes.
const RESULT_BYTES: u64 = 16 << 20;
/// The range of random rotations of subgroups: enough for every number of subgroups in the tests.
const MAX_TURN: u32 = 12;

/// The limits on the parameters of a kernel on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct KernelLimits {
    pub classes: u32,
    /// Instance slots of a workgroup.
    pub lanes: u32,
    /// Storages of an instance, without padding.
    pub storages: u32,
    /// Result words of an instance.
    pub slots: u32,
    /// The minimum number of groups: the number of threads if each invocation runs every thread, else 1.
    pub min_groups: u32,
    /// The smallest and largest number of groups to draw.
    pub groups: (u32, u32),
    /// The minimum number of groups of a dispatch, even if a round takes long.
    pub min_dispatch_groups: u32,
    /// Units of the location buffer.
    pub location_units: u64,
    /// Words of a unit of location memory.
    pub storage_words: u32,
    /// The maximum iterations of all loops of the test in a round.
    pub max_loop_iterations: u32,
    /// Additional iterations of a rendezvous if threads have separate loops; else 0.
    pub rendezvous_iterations: u32,
    pub result_words: u64,
    /// Words of the rendezvous buffer.
    pub rendezvous_words: u64,
    /// Words of the claims of a drawn kernel.
    pub claim_words: u64,
    /// Loop iterations that the driver allows in a kernel.
    pub loop_budget: Option<u32>,
    /// Idle lanes may also execute the waiting loop.
    pub idle_lanes: bool,
    /// The number of workgroups that take part in a rendezvous: those of a group (or of all groups), at most
    /// as many as run concurrently.
    pub party: u32,
    /// Words of scratch memory; 0 without memory stress.
    pub scratch_words: u64,
    /// The maximum number of workgroups of a dispatch.
    pub max_workgroups: u32,
    /// Bit `c` is set if some kernel has `c` workgroup classes; 0 if a kernel has more classes than bits.
    pub class_counts: u64,
}

impl KernelLimits {
    /// Returns the words of a location buffer.
    pub fn location_words(&self) -> u64 {
        self.location_units * u64::from(self.storage_words)
    }

    /// Returns the words of a result buffer: a salt follows the results.
    pub fn result_buffer_words(&self) -> u64 {
        self.result_words + 1
    }

    pub fn buffer_words(&self, binding: Binding) -> u64 {
        match binding {
            Binding::Locations | Binding::SeparateLocations => self.location_words(),
            Binding::Results => self.result_buffer_words(),
            Binding::Rendezvous => self.rendezvous_words,
            Binding::Scratch => self.scratch_words,
            Binding::Claims => self.claim_words,
        }
    }

    /// Computes the limits for `program` on a device under `stress`.
    ///
    /// # Errors
    /// [`Cause::TooSmall`] if the device cannot hold one group, or all groups of the variant.
    /// [`Cause::Kernel`] for a kernel without threads.
    pub fn new(
        program: &Program,
        capabilities: &plan::Capabilities,
        stress: &Stress,
    ) -> Result<KernelLimits, Cause> {
        let classes = program.max_workgroups_per_group();
        let min_groups = program.min_groups();
        let slots = u32::try_from(program.results.len()).unwrap_or(u32::MAX);
        if classes == 0 || slots == 0 || program.lanes == 0 {
            return Err(Cause::Kernel("it has no thread that reports a result".into()));
        }
        let device_words = capabilities.max_storage_buffer_bytes / 4;
        let storage_words = program.storage_words.max(1);
        // An image holds the whole location memory, so the smallest one bounds it.
        let max_image_texels = program.kernels().flat_map(|kernel| &kernel.images).map(max_texels).min();
        let by_images = max_image_texels.map(|texels| texels / u64::from(storage_words));
        let locations = (device_words.min(LOCATION_BYTES / 4) / u64::from(storage_words))
            .min(by_images.unwrap_or(u64::MAX));
        // One word is for the salt.
        let results = device_words.min(RESULT_BYTES / 4).saturating_sub(1);
        let lanes = u64::from(program.lanes);
        let storages = program.storages.max(1);
        let rendezvous_spacing = program.phases.iter().map(shaders::DispatchPhase::rendezvous_spacing).max();
        let meeting_place = u64::from(rendezvous_spacing.unwrap_or(1));

        // The groups that fit if a dispatch has one round and no gaps in its memory.
        let by_memory = (results / (lanes * u64::from(slots)))
            .min((locations / u64::from(storages)).saturating_sub(1) / lanes)
            .min(device_words / meeting_place);
        let max_workgroups = capabilities.max_workgroups.min(graphics_draw::max_draw_workgroups(program));
        let by_count = u64::from(max_workgroups / classes);
        let max_groups = u32::try_from(by_memory.min(by_count)).unwrap_or(MAX_GROUPS).min(MAX_GROUPS);
        let filling = program.fixed_groups();
        let required_groups = filling.unwrap_or(min_groups).max(min_groups);
        if max_groups < required_groups {
            return Err(Cause::TooSmall(format!(
                "{required_groups} groups of {classes} workgroups with {lanes} lanes, {storages} locations and {slots} results"
            )));
        }
        let requested = filling.map_or(group_range(program, stress), |groups| (groups, groups));
        let groups = (requested.0.clamp(min_groups, max_groups), requested.1.clamp(min_groups, max_groups));

        // The largest dispatch that can be drawn. Draws stay within the memory reserved here.
        let instances = u64::from(groups.1) * lanes * u64::from(stress.rounds.1);
        let stride = u64::from(storages) * u64::from(stress.spacing.1) + u64::from(stress.padding.1);
        // If a workgroup does not fill its last subgroup, a driver may run the waiting loop in the idle lanes
        // too. They never see a partner arrive, and their loads count against the same budget. The same holds
        // for helper invocations.
        let subgroup_size = capabilities.subgroup_size.max(1);
        let idle_lanes = program.kernels().any(|kernel| {
            let helpers = kernel.variant.stage == CarrierStage::FragmentHelpers;
            helpers || !kernel.workgroup_size.is_multiple_of(subgroup_size)
        });
        Ok(KernelLimits {
            classes,
            lanes: program.lanes,
            storages,
            storage_words,
            max_loop_iterations: program.max_loop_iterations(),
            rendezvous_iterations: rendezvous_iterations(program.thread_loops()),
            slots,
            min_groups,
            groups,
            min_dispatch_groups: required_groups,
            location_units: round_up_to_rows(
                instances.saturating_add(1).saturating_mul(stride).clamp(1, locations),
                by_images,
            ),
            result_words: instances.saturating_mul(u64::from(slots)).min(results),
            rendezvous_words: u64::from(groups.1) * meeting_place,
            loop_budget: capabilities.loop_budget,
            idle_lanes,
            scratch_words: scratch_words(program, stress).min(device_words),
            max_workgroups,
            claim_words: graphics_draw::claim_words(program, classes * groups.1),
            class_counts: class_count_set(program).unwrap_or(0),
            // A CPU driver runs one workgroup per processor concurrently; more partners would never meet.
            party: match if min_groups > 1 { groups.1 } else { classes } {
                all if capabilities.is_cpu && stress.calibrate => all.min(concurrent_workgroups()),
                all => all,
            },
        })
    }
}

pub(crate) fn adapt_settings(program: &Program, settings: &RunSettings) -> RunSettings {
    let mut stress = settings.stress.clone();
    host::align_to_atoms(program, &mut stress);
    limit_to_single_round(program, &mut stress);
    reduce_filled_rounds(program, &mut stress);
    RunSettings { stress, ..settings.clone() }
}

/// Reduces a stress to one round where necessary, and adds groups instead.
///
/// Workgroup memory is zeroed only at the start of a dispatch, so later rounds would not test that. A
/// fragment has one interlocked section, before which it does not wait.
fn limit_to_single_round(program: &Program, stress: &mut Stress) {
    let needs_single_round = |kernel: &CompiledKernel| {
        kernel.variant.workgroup_memory == WorkgroupInitialization::Zeroed
            && kernel.requirements.workgroup_bytes > 0
    };
    if program.kernels().any(|kernel| kernel.carrier.is_single_round()) {
        let multiply_max =
            |(least, most): (u32, u32)| (least, most.saturating_mul(stress.rounds.1).min(MAX_GROUPS));
        (stress.groups, stress.groups_within) =
            (multiply_max(stress.groups), multiply_max(stress.groups_within));
        (stress.rounds, stress.spin) = ((1, 1), (0, 0));
    }
    if program.kernels().any(needs_single_round) {
        stress.rounds = (1, 1);
    }
}

/// Returns the range of groups to draw.
fn group_range(program: &Program, stress: &Stress) -> (u32, u32) {
    if program.max_workgroups_per_group() == 1 && program.min_groups() == 1 {
        stress.groups_within
    } else {
        stress.groups
    }
}

/// If a variant needs more groups than usual, reduces the rounds so that a dispatch has the same amount of
/// work.
fn reduce_filled_rounds(program: &Program, stress: &mut Stress) {
    let (_, most) = group_range(program, stress);
    if let Some(groups) = program.fixed_groups().filter(|groups| *groups > most) {
        let reduce = |rounds: u32| {
            let rounds = u64::from(rounds) * u64::from(most) / u64::from(groups);
            u32::try_from(rounds).unwrap_or(u32::MAX).max(1)
        };
        stress.rounds = (reduce(stress.rounds.0), reduce(stress.rounds.1));
    }
}

/// Returns the words of scratch memory that the kernels of a program need.
fn scratch_words(program: &Program, stress: &Stress) -> u64 {
    if !program.kernels().any(shaders::CompiledKernel::is_stressed) {
        return 0;
    }
    stress.memory_stress.as_ref().map_or(1, |memory| memory.scratch_words())
}

/// Returns the set of the kernels' workgroup class counts as bits; `None` if one is too large.
fn class_count_set(program: &Program) -> Option<u64> {
    program.kernels().try_fold(0, |set, kernel| Some(set | 1u64.checked_shl(kernel.workgroups_per_group())?))
}

/// Returns the number of workgroups that a CPU driver runs concurrently: it has one thread per processor.
fn concurrent_workgroups() -> u32 {
    let processors = std::thread::available_parallelism().ok();
    processors.and_then(|count| u32::try_from(count.get()).ok()).unwrap_or(u32::MAX)
}

/// Rounds the units to whole rows of an image, if there is one.
fn round_up_to_rows(units: u64, by_images: Option<u64>) -> u64 {
    if by_images.is_some() {
        units.next_multiple_of(IMAGE_WIDTH.into()).min(by_images.unwrap_or(units))
    } else {
        units
    }
}

/// Returns the number of texels that an image of any device can hold.
fn max_texels(image: &ImageBinding) -> u64 {
    match image.shape {
        // Every device allows more, but each submission copies all of them.
        ImageForm::TwoDimensional => u64::from(IMAGE_WIDTH) * 256,
        ImageForm::OneDimensional => 4096,
        ImageForm::TexelBuffer => 65536,
    }
}

/// The generator of parameters.
#[derive(Clone, Debug)]
pub(crate) struct ParameterSampler {
    generator: Xoshiro256PlusPlus,
    stress: Stress,
    bounds: KernelLimits,
    poison: u32,
    done: u32,
}

impl ParameterSampler {
    /// Creates a generator for `seed`.
    pub fn new(seed: u64, stress: Stress, bounds: KernelLimits, poison: u32, done: u32) -> ParameterSampler {
        ParameterSampler { generator: Xoshiro256PlusPlus::seed_from_u64(seed), stress, bounds, poison, done }
    }

    /// Draws the number of groups of a dispatch.
    pub fn sample_groups(&mut self) -> u32 {
        self.sample_range(self.bounds.groups)
    }

    /// Draws the parameters of a dispatch of `groups` groups with this memory stress.
    ///
    /// `scale` is the fraction of the drawn rounds to execute, and `instances` the maximum number of
    /// instances; there is at least one round. `max_polls` limits the polling loads of a rendezvous. If it is
    /// 0, there is no rendezvous, and the number of rounds is the largest in the range.
    pub fn sample_parameters(
        &mut self,
        groups: u32,
        scale: f64,
        instances: u64,
        max_polls: u32,
        stress: Option<&StressParameters>,
    ) -> Parameters {
        let iterations_per_round = ParameterSampler::iterations_per_round(stress);
        let bounds = self.bounds;
        let (spin, rounds) = (self.sample_range(self.stress.spin), self.sample_range(self.stress.rounds));
        // At 100 percent, no random number is consumed.
        let percent = self.stress.meeting_percent;
        let spin = if percent < 100 && !self.sample_percent(percent) { 0 } else { spin };
        let (interval, hold) = (self.sample_range(self.stress.interval), self.sample_range(self.stress.hold));
        let max_rounds = self.stress.rounds.1;
        // Without polls there is no rendezvous. The largest interval then leaves most of the loop
        // budget for rounds.
        let (rounds, interval, hold) =
            if max_polls == 0 { (max_rounds, max_rounds, 0) } else { (rounds, interval, hold) };
        let spin = spin.min(max_polls);
        let spacing = self.sample_range(self.stress.spacing);
        let padding = self.sample_range(self.stress.padding);
        let pairing = self.sample_pairing(groups);
        let (group_multiplier, group_offset) = self.sample_group_permutation(groups);
        let (lane_multiplier, lane_offset) = self.sample_permutation(bounds.lanes, self.stress.mix_lanes);

        // Threads of one workgroup need no rendezvous, and each role of a workgroup has its own offset only
        // if there is another class.
        let after = hold.saturating_add(bounds.rendezvous_iterations);
        let spin = if bounds.party == 1 {
            0
        } else {
            self.fit_spin_to_budget(spin, interval, after, iterations_per_round)
        };
        // A kernel with loops has fewer rounds; rounding up then costs at most one rendezvous.
        let rounding = if bounds.max_loop_iterations > 0 { 3 + after } else { 0 };
        let rounds_within = |budget| {
            rounds_within(
                budget,
                self.failed_poll_iterations(spin).saturating_add(rounding),
                interval,
                after,
                iterations_per_round,
            )
        };
        let each_round = u64::from(groups) * u64::from(bounds.lanes);
        let (spacing, stride) = self.fit_layout(each_round, spacing, padding);

        // The tightest limit on rounds: result memory, location memory, the driver's loop budget,
        // and the instances that are still wanted.
        let round_limit = (bounds.result_words / (each_round * u64::from(bounds.slots)))
            .min((bounds.location_units / u64::from(stride)).saturating_sub(1) / each_round)
            .min(bounds.loop_budget.map_or(u64::MAX, |budget| {
                u64::from(rounds_within(budget))
                    / u64::from(1 + with_final_iterations(bounds.max_loop_iterations))
            }))
            .min(instances.div_ceil(each_round));
        let rounds = ((f64::from(rounds) * scale) as u64).min(round_limit).max(1);
        Parameters {
            groups,
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            spin,
            pairing,
            group_multiplier,
            group_offset,
            lane_multiplier,
            lane_offset,
            stride,
            spacing,
            poison: self.poison,
            done: self.done,
            interval,
            hold,
            turn: self.generator.random_range(0..MAX_TURN),
            party: if bounds.min_groups > 1 { bounds.party.min(groups) } else { bounds.party },
        }
    }

    /// Returns the polling loads, reduced so that at least one round fits the driver's loop budget.
    fn fit_spin_to_budget(&self, spin: u32, interval: u32, after: u32, iterations_per_round: u32) -> u32 {
        let Some(budget) = self.bounds.loop_budget else { return spin };
        let loops = with_final_iterations(self.bounds.max_loop_iterations);
        let each = iterations_per_round.saturating_add(loops);
        let fits =
            |spin: &u32| rounds_within(budget, self.failed_poll_iterations(*spin), interval, after, each) > 0;
        let min_spin = self.stress.spin.0;
        // The idle lanes double the cost of each poll, so a quarter of the budget becomes half.
        let reduced = if self.bounds.idle_lanes { budget / 4 } else { min_spin };
        [spin, reduced].into_iter().find(fits).unwrap_or(min_spin.min(reduced))
    }

    /// Returns the loop iterations that failed polls may take.
    fn failed_poll_iterations(&self, spin: u32) -> u32 {
        if self.bounds.idle_lanes { spin.saturating_mul(2) } else { spin }
    }

    /// Returns spacing and stride, reduced so that one round fits.
    fn fit_layout(&self, each_round: u64, spacing: u32, padding: u32) -> (u32, u32) {
        let storages = self.bounds.storages;
        // The instance after the last one contains the salts.
        let room = u32::try_from(self.bounds.location_units / (each_round + 1)).unwrap_or(u32::MAX);
        let spacing = spacing.min(room / storages).max(1);
        // The padding gives way, but units of two instances never overlap.
        (spacing, storages.saturating_mul(spacing).saturating_add(padding).min(room).max(storages * spacing))
    }

    /// Draws the parameters of a later phase: the same instances, with a new assignment to invocations.
    pub fn sample_reassignment(&mut self, parameters: &Parameters) -> Parameters {
        let groups = parameters.groups;
        let pairing = self.sample_pairing(groups);
        let (group_multiplier, group_offset) = self.sample_group_permutation(groups);
        let (lane_multiplier, lane_offset) =
            self.sample_permutation(self.bounds.lanes, self.stress.mix_lanes);
        Parameters { pairing, group_multiplier, group_offset, lane_multiplier, lane_offset, ..*parameters }
    }

    /// Returns multiplier and offset of a permutation of `count` numbers; the identity without `mix`.
    fn sample_permutation(&mut self, count: u32, mix: bool) -> (u32, u32) {
        // `n * multiplier + offset` modulo `count` is a permutation if the multiplier is coprime to
        // `count`.
        if mix { (self.sample_coprime(count), self.sample_range((0, count - 1))) } else { (1, 0) }
    }

    /// Draws the permutation of groups. If each invocation runs every thread, the offset is coprime to the
    /// number of groups.
    fn sample_group_permutation(&mut self, groups: u32) -> (u32, u32) {
        let mix = self.stress.mix_groups;
        match self.bounds.min_groups {
            1 => self.sample_permutation(groups, mix),
            _ if mix => (self.sample_coprime(groups), self.sample_coprime(groups)),
            _ => (1, 1),
        }
    }

    fn sample_pairing(&mut self, groups: u32) -> u32 {
        match self.stress.pairing {
            Pairing::Alternating => 1,
            Pairing::Contiguous => groups,
            Pairing::Any => {
                // Only a divisor splits the groups into blocks of equal size.
                let divisors: Vec<u32> =
                    (1..=groups).filter(|divisor| groups.is_multiple_of(*divisor)).collect();
                let choice = self.generator.random_range(0..divisors.len());
                divisors.get(choice).copied().unwrap_or(1)
            }
        }
    }

    /// Returns a number below `count` that is coprime to it; 1 for counts of 1 and 2.
    fn sample_coprime(&mut self, count: u32) -> u32 {
        if count <= 2 {
            return 1;
        }
        loop {
            let candidate = self.generator.random_range(1..count);
            if gcd(candidate, count) == 1 {
                return candidate;
            }
        }
    }

    fn sample_range(&mut self, (low, high): (u32, u32)) -> u32 {
        self.generator.random_range(low..=high)
    }
}

/// Returns the iterations of a test's loops in a round, including the final iteration of each.
fn with_final_iterations(loop_turns: u32) -> u32 {
    loop_turns.saturating_add(loop_turns.div_ceil(shaders::KernelConfig::LOOP_BOUND))
}

fn gcd(left: u32, right: u32) -> u32 {
    if right == 0 { left } else { gcd(right, left % right) }
}

#[cfg(test)]
mod tests {
    use litmus::{Observable, RegisterId, ThreadId};
    use proptest::prelude::*;
    use shaders::{CompiledKernel, Requirements, ResultSlot, Roles};

    use super::*;

    fn kernel(classes: u16, lanes: u32, storages: u32) -> CompiledKernel {
        let thread = |number| ResultSlot::Register(Observable::Register(ThreadId(number), RegisterId(0)));
        CompiledKernel {
            words: Vec::new(),
            workgroup_size: lanes,
            identity: 0,
            measured_bindings: Vec::new(),
            salted_paths: Vec::new(),
            lanes,
            bindings: Vec::new(),
            carrier: shaders::carrier::Carrier::Compute,
            roles: Roles { classes: (0..classes).map(|number| vec![ThreadId(number)]).collect() },
            first_class: 0,
            first_slot: 0,
            images: Vec::new(),
            uses_addresses: false,
            separate_storages: Vec::new(),
            variant: shaders::Variant::default(),
            storage_words: 1,
            image_storages: Vec::new(),
            max_loop_iterations: 0,
            thread_loops: 0,
            is_parallel: false,
            storages,
            initial_values: vec![0; storages as usize],
            results: (0..classes).map(thread).collect(),
            final_values: Vec::new(),
            requirements: Requirements::default(),
        }
    }

    fn pairing() -> impl Strategy<Value = Pairing> {
        prop_oneof![Just(Pairing::Alternating), Just(Pairing::Contiguous), Just(Pairing::Any)]
    }

    fn range(low: u32, high: u32) -> impl Strategy<Value = (u32, u32)> {
        (low..=high, low..=high).prop_map(|(a, b)| (a.min(b), a.max(b)))
    }

    prop_compose! {
        fn stress()(
            groups in range(1, 20), rounds in range(1, 9), spin in range(0, 300), spacing in range(1, 40),
            padding in range(0, 9), interval in range(1, 5), hold in range(0, 3),
            pairing in pairing(), mix_groups: bool, mix_lanes: bool,
        ) -> Stress {
            Stress {
                groups, groups_within: groups, rounds, spin, interval, hold, spacing, padding, pairing, mix_groups, mix_lanes,
                ..Stress::preset("sim").unwrap()
            }
        }
    }

    proptest! {
        #[test]
        fn every_instance_has_each_role_once_within_memory(
            stress in stress(),
            (classes, lanes, storages) in (1u16..5, 1u32..18, 1u32..4),
            workgroup in 1u32..9,
            bytes in 2_000u64..200_000,
            loop_budget in prop_oneof![Just(None), Just(Some(65_535u32)), Just(Some(400u32))],
            thread_loops: bool,
            parallel: bool,
            seed: u64,
            scale in 0.0f64..1.0,
        ) {
            let thread_loops = if thread_loops { u32::from(classes) } else { 0 };
            let parallel = parallel && classes > 1;
            let thread_loops = if parallel { 0 } else { thread_loops };
            let kernel = CompiledKernel { workgroup_size: workgroup, thread_loops, is_parallel: parallel, ..kernel(classes, lanes, storages) };
            let capabilities = plan::Capabilities {
                max_workgroups: 64, max_storage_buffer_bytes: bytes, loop_budget, subgroup_size: 4, ..Default::default()
            };
            let bounds = KernelLimits::new(&kernel.into(), &capabilities, &stress).unwrap();
            let mut draw = ParameterSampler::new(seed, stress.clone(), bounds, 77, 78);
            let classes = u32::from(classes);
            for _ in 0..4 {
                let groups = draw.sample_groups();
                let workgroups = if parallel { groups } else { groups * classes };
                prop_assert!(groups >= 1 && workgroups <= 64);
                let p = draw.sample_parameters(groups, scale, u64::MAX, u32::MAX, None);
                let instances = p.groups * p.rounds * lanes;
                prop_assert!(p.rounds >= 1 && p.groups == groups);
                prop_assert!(p.stride >= storages * p.spacing && p.spacing >= 1);
                prop_assert!(u64::from((instances + 1) * p.stride) <= bounds.location_units);
                prop_assert!(u64::from(instances * bounds.slots) <= bounds.result_words);
                if let Some(budget) = loop_budget {
                    let idle = workgroup % 4 != 0;
                    let meetings = p.rounds.div_ceil(p.interval);
                    let ends = if thread_loops > 0 { thread_loops + 1 } else { 0 };
                    let waits = meetings * (2 + ends + p.hold) + p.spin * if idle { 2 } else { 1 };
                    prop_assert!(p.rounds + waits < budget, "{p:?}");
                }
                // Check the contract of the kernel.
                let mut played = vec![0u64; instances as usize];
                let partners = if parallel { groups } else { classes };
                prop_assert!(p.party <= partners);
                let mut places = vec![0u64; instances as usize];
                for (workgroup, class) in (0..workgroups).flat_map(|workgroup| (0..classes).map(move |class| (workgroup, class))) {
                    let (plays, group) =
                        if parallel { (class, workgroup) } else { p.class_and_group(workgroup, classes) };
                    if plays != class {
                        continue;
                    }
                    prop_assert!(group < groups);
                    for (round, lane) in (0..p.rounds).flat_map(|round| (0..lanes).map(move |lane| (round, lane))) {
                        let number = p.instance_index(lanes, (class, group), lane, round) as usize;
                        prop_assert_eq!(places[number] & (1 << workgroup), 0, "two threads of an instance in workgroup {}", workgroup);
                        places[number] |= 1 << workgroup;
                        let instance = &mut played[number];
                        prop_assert_eq!(*instance & (1 << class), 0, "class {} twice", class);
                        *instance |= 1 << class;
                    }
                }
                prop_assert!(played.iter().all(|roles| *roles == (1 << classes) - 1));
            }
        }
    }

    #[test]
    fn a_single_workgroup_does_not_wait() {
        let stress = Stress { spin: (50, 50), ..Stress::preset("sim").unwrap() };
        let bounds = KernelLimits::new(
            &kernel(1, 4, 1).into(),
            &plan::Capabilities {
                max_workgroups: 9,
                max_storage_buffer_bytes: 1 << 20,
                ..Default::default()
            },
            &stress,
        )
        .unwrap();
        assert_eq!(
            ParameterSampler::new(1, stress, bounds, 0, 0)
                .sample_parameters(1, 1.0, 100, u32::MAX, None)
                .spin,
            0
        );
    }

    /// Without a rendezvous, the whole budget is for rounds, and all loops may reach their bound.
    #[test]
    fn loops_at_their_bound_fit_the_loop_budget_of_a_driver() {
        for loops in 1..4 {
            let turns = loops * shaders::KernelConfig::LOOP_BOUND;
            let kernel = CompiledKernel { max_loop_iterations: turns, ..kernel(2, 8, 2) };
            let stress = Stress::preset("lavapipe").unwrap();
            let capabilities = plan::Capabilities {
                max_workgroups: 9,
                max_storage_buffer_bytes: 1 << 27,
                loop_budget: Some(65_535),
                ..Default::default()
            };
            let bounds = KernelLimits::new(&kernel.into(), &capabilities, &stress).unwrap();
            let rounds = ParameterSampler::new(1, stress, bounds, 0, 0)
                .sample_parameters(1, 1.0, u64::MAX, 0, None)
                .rounds;
            // Each loop has one more turn that ends it.
            let used = rounds * (1 + turns + loops);
            assert!((60_000..65_535).contains(&used), "{loops}: {used}");
        }
    }

    /// Helper invocations wait as long as others, and never see a partner arrive.
    #[test]
    fn waits_of_helpers_fit_the_loop_budget_of_a_driver() {
        let variant = shaders::Variant { stage: CarrierStage::FragmentHelpers, ..Default::default() };
        let kernel = CompiledKernel { variant, ..kernel(2, 8, 2) };
        let stress = Stress::preset("lavapipe").unwrap();
        let capabilities = plan::Capabilities {
            max_workgroups: 9,
            max_storage_buffer_bytes: 1 << 27,
            subgroup_size: 8,
            loop_budget: Some(65_535),
            ..Default::default()
        };
        let bounds = KernelLimits::new(&kernel.into(), &capabilities, &stress).unwrap();
        let mut draw = ParameterSampler::new(1, stress, bounds, 0, 0);
        for _ in 0..100 {
            let drawn = draw.sample_parameters(1, 1.0, u64::MAX, u32::MAX, None);
            let fit = rounds_within(65_535, 2 * drawn.spin, drawn.interval, drawn.hold, 1);
            assert!(drawn.rounds <= fit, "{drawn:?}");
        }
    }

    #[test]
    fn the_largest_groups_do_not_overflow() {
        let largest = u64::from(MAX_GROUPS);
        assert!(largest * largest + 16 * largest < 1 << 32);
    }
}
