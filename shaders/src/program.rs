//! A test as one or several kernels: phases with dependencies between them, and the concurrent kernels of a
//! phase.
//!
//! Threads that system-synchronizes-with orders run in different dispatches, with a dependency of the API in
//! between. The threads of one phase run in one kernel for each queue, or for each workgroup with
//! [`Pipelines::Split`]. These kernels are dispatched without synchronization in between, each on its queue.
//!
//! # Layout of memory
//! All kernels of a program share location memory and result memory, and run the same instances: they have
//! the same lanes, and are dispatched with the same groups, rounds, stride and spacing. Each phase has its
//! own multipliers, offsets and pairing. Kernels of one phase count their workgroup classes together
//! ([`CompiledKernel::first_class`]) and share one rendezvous buffer; each phase has its own.
//!
//! # Soundness
//! A dependency is between whole dispatches. So it orders at least as much as the test: a whole thread runs
//! before another even if only some of its accesses must, and everything that a phase wrote is published if
//! one of its threads has an `avdevice`. The device is therefore judged by the unchanged test. A weaker order
//! is refused by name, and so is a test with named accesses if a device would publish more than it allows.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    LocationId, Observable, Schedule, ScheduledItem, Scope, StorageClass, Term, Test, Thread, ThreadId,
    ThreadPlace,
};
use vocabulary::Feature;

use crate::carrier::Carrier;
use crate::contract::{overflow_word, rendezvous_spacing};
use crate::dependency;
pub use crate::dependency::Dependency;
use crate::dispatch::{self, FragmentPoints, ProgramContext};
use crate::fixed::FixedDispatch;
use crate::host::{self, ProgramHosts};
use crate::kernel::{CompileError, CompiledKernel, KernelConfig, ResultSlot};
use crate::memory::TestUsage;
use crate::placement::WorkgroupLayout;
use crate::queues::queues;
use crate::rules::Rule;
use crate::variant::{CarrierStage, SeparateStorages, Variant};

/// A test as kernels, in the order of their dispatches.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The phases in sequence. No phase is empty, and only a program with host threads may have none. With
    /// host threads, each phase is a batch.
    pub phases: Vec<DispatchPhase>,
    /// The host threads, whose reports are last in [`Program::results`].
    pub hosts: Option<ProgramHosts>,
    /// True if dependencies of all memory between phases would make no more memory available or visible to
    /// accesses of another phase.
    pub all_memory: bool,
    /// The families of its queues, numbered from 0 in the order in which threads name them; at least one.
    pub queues: Vec<u32>,
    /// The calls of the test for each queue: queue `i` is that of [`Program::queues`], and each kernel runs
    /// the threads of one dispatch.
    pub schedule: Option<Schedule>,
    /// The separate storages are those with queue-family ownership.
    pub has_separate_owned: bool,
    /// Why the test can run only by its calls: dependencies between phases would publish more than the test,
    /// or the host threads cannot perform the derived acts.
    pub calls_only: Option<Rule>,
    /// Slots of a workgroup, in every kernel.
    pub lanes: u32,
    /// Units of location memory of one instance without padding; as [`CompiledKernel::storages`].
    pub storages: u32,
    /// Words of a unit of location memory; as [`CompiledKernel::storage_words`].
    pub storage_words: u32,
    /// The initial value of each storage as bits; as [`CompiledKernel::initial_values`].
    pub initial_values: Vec<u128>,
    /// The content of each result word of an instance, over all kernels, with threads as numbered in the
    /// test.
    pub results: Vec<ResultSlot>,
    /// Storages with a final value in the outcome, with their index.
    pub final_values: Vec<(Observable, u32)>,
}

/// Kernels that are dispatched without synchronization in between.
#[derive(Clone, Debug)]
pub struct DispatchPhase {
    /// The dependency after the previous phase; empty for the first.
    pub dependency: Dependency,
    pub kernels: Vec<ProgramKernel>,
}

/// A kernel with its threads.
#[derive(Clone, Debug)]
pub struct ProgramKernel {
    /// The threads, in the order of the test: index `i` here is thread `i` of the kernel.
    pub threads: Vec<ThreadId>,
    /// Their queue in [`Program::queues`].
    pub queue: u32,
    /// The kernel, whose threads are numbered by their index in `threads`.
    pub kernel: CompiledKernel,
}

/// The threads of a phase that share a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pipelines {
    /// All threads of one queue.
    #[default]
    Merged,
    /// The threads of one workgroup: no kernel contains both sides of a communication between workgroups, so
    /// that a compiler sees memory that its shader only reads, or only writes.
    Split,
}

impl Program {
    /// Returns the kernels in the order of their dispatches.
    pub fn kernels(&self) -> impl Iterator<Item = &CompiledKernel> {
        self.phases.iter().flat_map(|phase| &phase.kernels).map(|part| &part.kernel)
    }

    /// Returns the maximum number of threads with their own loop of rounds in a kernel; as
    /// [`CompiledKernel::thread_loops`].
    pub fn thread_loops(&self) -> u32 {
        self.kernels().map(|kernel| kernel.thread_loops).max().unwrap_or(0)
    }

    /// Returns the maximum of [`CompiledKernel::max_loop_iterations`] over all kernels.
    pub fn max_loop_iterations(&self) -> u32 {
        self.kernels().map(|kernel| kernel.max_loop_iterations).max().unwrap_or(0)
    }

    /// Returns the separate storages; as [`CompiledKernel::separate_storages`].
    pub fn separate_storages(&self) -> &[u32] {
        self.kernels().next().map_or(&[], |kernel| &kernel.separate_storages)
    }

    /// Returns the storages in images with their own memory, without duplicates.
    pub fn image_storages(&self) -> Vec<u32> {
        let mut storages: Vec<u32> =
            self.kernels().flat_map(|kernel| kernel.image_storages.iter().copied()).collect();
        storages.sort_unstable();
        storages.dedup();
        storages
    }

    /// Returns true if images with final values contain floating-point numbers; `None` if there are none.
    pub fn are_final_images_float(&self) -> Option<bool> {
        let storages = self.image_storages();
        if !self.final_values.iter().any(|(_, storage)| storages.contains(storage)) {
            return None;
        }
        self.kernels().flat_map(|kernel| &kernel.images).map(|image| image.is_float).next()
    }

    /// Returns the required features, without duplicates.
    pub fn features(&self) -> Vec<Feature> {
        let mut features: Vec<Feature> = Vec::new();
        for feature in self.kernels().flat_map(|kernel| &kernel.requirements.features) {
            if !features.contains(feature) {
                features.push(*feature);
            }
        }
        features
    }

    /// Returns the minimum number of groups: the number of threads if each invocation runs every thread,
    /// because the threads of an instance need separate workgroups.
    pub fn min_groups(&self) -> u32 {
        let parallel = self.kernels().filter(|kernel| kernel.is_parallel);
        parallel.map(|kernel| kernel.roles.classes.len() as u32).max().unwrap_or(1)
    }

    /// Returns the number of groups for a variant that sets the number of concurrent workgroups: as many
    /// groups as fit, in the phase with the most workgroups per group. `None` if the number is drawn.
    pub fn fixed_groups(&self) -> Option<u32> {
        let workgroups = self.kernels().next()?.variant.workgroup_count.workgroups()?;
        Some(workgroups / self.max_workgroups_per_group().max(1))
    }

    /// Returns the workgroups of a group in the phase with the most: the requirement of a dispatch of one
    /// group.
    pub fn max_workgroups_per_group(&self) -> u32 {
        self.phases.iter().map(DispatchPhase::workgroups_per_group).max().unwrap_or(1)
    }
}

impl DispatchPhase {
    /// Returns the workgroups of a group of all its kernels: one of each class.
    pub fn workgroups_per_group(&self) -> u32 {
        self.kernels.iter().map(|part| part.kernel.workgroups_per_group()).sum()
    }

    /// Returns the words between the rendezvous areas of two groups in the phase.
    pub fn rendezvous_spacing(&self) -> u32 {
        rendezvous_spacing(self.rendezvous_classes())
    }

    /// Returns the word of that buffer that counts invocations outside the grid.
    pub fn overflow_word(&self) -> u32 {
        overflow_word(self.rendezvous_classes())
    }

    /// Returns the number of workgroup classes of its kernels, separate workgroups or not.
    fn rendezvous_classes(&self) -> u32 {
        let classes = self.kernels.iter().map(|part| part.kernel.roles.classes.len() as u32);
        classes.fold(0, u32::saturating_add)
    }
}

impl From<CompiledKernel> for Program {
    fn from(kernel: CompiledKernel) -> Program {
        let mut threads: Vec<ThreadId> = kernel.roles.classes.iter().flatten().copied().collect();
        threads.sort_unstable();
        Program {
            lanes: kernel.lanes,
            storages: kernel.storages,
            storage_words: kernel.storage_words,
            initial_values: kernel.initial_values.clone(),
            results: kernel.results.clone(),
            final_values: kernel.final_values.clone(),
            all_memory: true,
            queues: vec![0],
            phases: vec![DispatchPhase {
                dependency: Dependency::default(),
                kernels: vec![ProgramKernel { threads, queue: 0, kernel }],
            }],
            ..Program::default()
        }
    }
}

/// Compiles a test to kernels.
///
/// # Errors
/// As [`crate::compile`], for each kernel. [`Rule::OneWorkgroup`] if roles cannot be split,
/// [`Rule::TooFewWorkgroups`] if a variant sets too few workgroups.
pub fn compile_program(
    test: &Test,
    config: &KernelConfig,
    pipelines: Pipelines,
) -> Result<Program, CompileError> {
    let program = compile_with_parameters(test, config, pipelines, None)?;
    match program.fixed_groups() {
        Some(groups) if groups < program.min_groups() => Err(Rule::TooFewWorkgroups.into()),
        _ => Ok(program),
    }
}

/// Compiles as [`compile_program()`], with constant parameters such as [`FixedDispatch::SINGLE`].
///
/// # Errors
/// As [`compile_program()`].
pub fn compile_fixed_program(
    test: &Test,
    config: &KernelConfig,
    pipelines: Pipelines,
    fixed: &FixedDispatch,
) -> Result<Program, CompileError> {
    compile_with_parameters(test, config, pipelines, Some(*fixed))
}

fn compile_with_parameters(
    test: &Test,
    config: &KernelConfig,
    pipelines: Pipelines,
    fixed: Option<FixedDispatch>,
) -> Result<Program, CompileError> {
    let test = &crate::stage::effective_test(test, config.variant.stage);
    let all: Vec<ThreadId> = (0..test.threads.len())
        .map(|thread| ThreadId(thread as u16))
        .filter(|thread| test.thread(*thread).place != ThreadPlace::Host)
        .collect();
    let has_hosts = all.len() < test.threads.len();
    if !(has_hosts && all.is_empty()) {
        crate::rules::check_program(&restrict_to_threads(test, &all))?;
    }
    crate::rules::check_stage(test, config.variant.stage)?;
    Rule::HostWithGraphicsStage.when(has_hosts && config.variant.stage != CarrierStage::Compute)?;
    let mixed = config.variant.stage.is_mixed();
    Rule::SingleStage.when(mixed && all.len() < 2)?;
    let config_of = |threads: &[ThreadId]| {
        let first = threads.first().map_or(0, |first| usize::from(first.0));
        let variant = Variant { stage: config.variant.stage.for_thread(first), ..config.variant };
        KernelConfig { variant, ..*config }
    };
    let uses_calls = config.variant.stage == CarrierStage::Compute && pipelines == Pipelines::Merged;
    let schedule = test.schedule().filter(|schedule| uses_calls && forms_whole_dispatches(test, schedule));
    let mut hosts = None;
    let mut calls_alone = None;
    let (phases, dependencies) = if has_hosts {
        let called = schedule.map(|schedule| host::schedule_calls(test, schedule));
        let (batches, planned, before) = match (plan_hosted_program(test), &called) {
            (Err(rule), Some(Ok(called))) => {
                calls_alone = Some(rule);
                host::hosts_from_calls(test, called)?
            }
            // The test can run only by its calls, and these are impossible.
            (Err(_), Some(Err(rule))) => return Err((*rule).into()),
            (derived, _) => derived?,
        };
        hosts = Some(host::ProgramHosts { call_schedule: called, ..planned });
        (batches, dependency::Dependencies { before, all_memory: false })
    } else {
        let phases = thread_phases(test)?;
        let dependencies = match dependency::phase_dependencies(test, &phases) {
            Err(Rule::MaskCoversOtherThreads) if schedule.is_some() => {
                calls_alone = Some(Rule::MaskCoversOtherThreads);
                let before = vec![Dependency::default(); phases.len()];
                dependency::Dependencies { before, all_memory: false }
            }
            between => between?,
        };
        (phases, dependencies)
    };
    check_workgroups(test, &phases)?;
    let mut apart = dispatch::separate_storages(test, config.variant)?;
    // Storages with an owner are separate, unless the variant separates others.
    let owned = schedule.map_or(&[][..], |schedule| &schedule.owned);
    let owned_apart =
        !owned.is_empty() && !has_hosts && config.variant.separate_storages == SeparateStorages::None;
    if owned_apart {
        let storages = dispatch::number_storages(test);
        apart =
            owned.iter().map(|own| storages.number_of(*own)).collect::<Result<_, _>>().map_err(Rule::from)?;
    }
    let queues = queues(test);
    let queue_of = |thread: &ThreadId| {
        let place = test.thread(*thread).place.device_placement()?;
        queues.iter().position(|queue| *queue == (place.queue_family, place.queue))
    };
    if phases.len() == 1
        && !mixed
        && schedule.is_none()
        && !has_hosts
        && pipelines == Pipelines::Merged
        && queues.len() == 1
        && !has_api_operation(test)
    {
        return Ok(dispatch::compile(
            test,
            config,
            &ProgramContext {
                fixed_dispatch: fixed,
                separate_storages: apart,
                ..ProgramContext::SINGLE_KERNEL
            },
        )?
        .into());
    }
    if test.has_tangles() {
        // Each kernel would number the lanes of a subgroup separately.
        return Err(Rule::SubgroupOperation.into());
    }
    let mut kernels: Vec<Vec<Vec<ThreadId>>> = Vec::with_capacity(phases.len());
    for threads in &phases {
        let parts = match pipelines {
            Pipelines::Merged if schedule.is_some() => group_by_workgroup(test, threads),
            Pipelines::Merged => (0..queues.len())
                .map(|queue| threads.iter().copied().filter(|own| queue_of(own) == Some(queue)).collect())
                .filter(|threads: &Vec<ThreadId>| !threads.is_empty())
                .collect(),
            Pipelines::Split => group_by_workgroup(test, threads),
        };
        let stages = |threads: &Vec<ThreadId>| group_by_stage(config.variant.stage, threads);
        kernels.push(if mixed { parts.iter().flat_map(stages).collect() } else { parts });
    }
    Rule::HostMemoryOutsideBuffer.when(has_hosts && !apart.is_empty())?;
    Rule::OneWorkgroup.when(pipelines == Pipelines::Split && kernels.iter().flatten().count() == 1)?;

    // All kernels run the same instances, so the fullest subgroup of any kernel determines the slots of a
    // workgroup.
    let mut lanes = if all.is_empty() { config.lanes.max(1) } else { u32::MAX };
    let storage_words = TestUsage::analyze(&restrict_to_threads(test, &all), config.variant)?.storage_words;
    for threads in kernels.iter().flatten() {
        lanes = lanes.min(
            WorkgroupLayout::new(&restrict_to_threads(test, threads), &config_of(threads), u32::MAX)?.lanes,
        );
    }
    let mut results: Vec<ResultSlot> = Vec::new();
    let mut dispatch_phases: Vec<DispatchPhase> = Vec::with_capacity(kernels.len());
    for (parts, before) in kernels.iter().zip(dependencies.before) {
        // In stages without workgroups, each thread is a class.
        let has_workgroups = config.variant.stage.has_workgroups();
        let classes = |threads: &Vec<ThreadId>| {
            if has_workgroups { group_by_workgroup(test, threads).len() } else { threads.len() }
        };
        let classes: usize = parts.iter().map(classes).sum();
        let mut first_class = 0;
        let mut phase = DispatchPhase { dependency: before, kernels: Vec::new() };
        for threads in parts {
            let queue = threads.first().and_then(queue_of).unwrap_or(0) as u32;
            let context = ProgramContext {
                first_class,
                classes: Some(classes as u32),
                first_slot: results.len() as u32,
                max_lanes: lanes,
                storage_words,
                fixed_dispatch: fixed,
                separate_storages: apart.clone(),
                points: phase.kernels.last().and_then(|before| fragment_points(before, queue, pipelines)),
            };
            let kernel =
                dispatch::compile(&restrict_to_threads(test, threads), &config_of(threads), &context)?;
            Rule::HostMemoryOutsideBuffer.when(has_hosts && !kernel.images.is_empty())?;
            first_class += kernel.roles.classes.len() as u32;
            results.extend(kernel.results.iter().map(|slot| renumber_threads(*slot, threads)));
            phase.kernels.push(ProgramKernel { threads: threads.clone(), queue, kernel });
        }
        dispatch_phases.push(phase);
    }
    for host in hosts.iter().flat_map(|hosts| &hosts.threads) {
        let own =
            |slot: &Observable| matches!(slot, Observable::Register(thread, _) if *thread == host.thread);
        let before = results.len();
        results.extend(test.observables().into_iter().filter(own).map(ResultSlot::Register));
        if results.len() == before {
            results.push(ResultSlot::Done(host.thread));
        }
    }
    let storages = dispatch::number_storages(test);
    Ok(Program {
        phases: dispatch_phases,
        hosts,
        all_memory: dependencies.all_memory,
        queues: queue_families(&queues),
        schedule: schedule.cloned(),
        has_separate_owned: owned_apart,
        calls_only: calls_alone,
        lanes,
        storages: storages.count(),
        storage_words,
        initial_values: storages.initial_values(test),
        final_values: storages.final_values(test, &results).map_err(Rule::from)?,
        results,
    })
}

/// Returns the test of some threads, for compiling one kernel of a program. Its question is reduced to the
/// locations of the outcome, and operations of the API are left out.
pub fn restrict_to_threads(test: &Test, threads: &[ThreadId]) -> Test {
    let thread = |id: &ThreadId| {
        let mut thread = test.threads.get(usize::from(id.0))?.clone();
        thread.instructions.retain(|instruction| !dependency::is_dependency_half(&instruction.kind));
        Some(thread)
    };
    let listed = test.observables().into_iter().filter_map(|observable| match observable {
        Observable::Location(location, component) => Some(Term::Location(location, component)),
        Observable::Register(..) => None,
    });
    Test {
        threads: threads.iter().filter_map(thread).collect(),
        system_sync: Vec::new(),
        listed_terms: listed.collect(),
        filter: None,
        question: None,
        ..test.clone()
    }
}

/// Returns the families of queues, numbered in their order.
fn queue_families(queues: &[(u32, u32)]) -> Vec<u32> {
    let mut names: Vec<u32> = Vec::new();
    let mut families = Vec::with_capacity(queues.len().max(1));
    for (family, _) in queues {
        let known = names.iter().position(|name| name == family).unwrap_or(names.len());
        if known == names.len() {
            names.push(*family);
        }
        families.push(known as u32);
    }
    if families.is_empty() { vec![0] } else { families }
}

fn renumber_threads(slot: ResultSlot, threads: &[ThreadId]) -> ResultSlot {
    let of_test = |local: ThreadId| threads.get(usize::from(local.0)).copied().unwrap_or(local);
    match slot {
        ResultSlot::Register(Observable::Register(thread, register)) => {
            ResultSlot::Register(Observable::Register(of_test(thread), register))
        }
        ResultSlot::Done(thread) => ResultSlot::Done(of_test(thread)),
        ResultSlot::High(Observable::Register(thread, register)) => {
            ResultSlot::High(Observable::Register(of_test(thread), register))
        }
        location @ (ResultSlot::Register(Observable::Location(..))
        | ResultSlot::High(Observable::Location(..))) => location,
    }
}

/// Returns the batches of a test with host threads, the host threads, and the derived dependency before each
/// batch.
fn plan_hosted_program(test: &Test) -> Result<host::HostedProgram, Rule> {
    let (batches, mut planned) = host::plan_hosts(test)?;
    let mut before = Vec::with_capacity(batches.len());
    for threads in &batches {
        let (own, after) = dependency::batch_dependencies(test, threads)?;
        before.push(own);
        planned.dependencies_after.push(after);
        // A batch is one submission.
        let queue = |thread: &ThreadId| {
            test.thread(*thread).place.device_placement().map(|place| (place.queue_family, place.queue))
        };
        Rule::SeveralQueues
            .when(threads.iter().any(|thread| queue(thread) != threads.first().and_then(queue)))?;
    }
    Ok((batches, planned, before))
}

fn has_api_operation(test: &Test) -> bool {
    let mut instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    instructions.any(|instruction| dependency::is_dependency_half(&instruction.kind))
}

/// Returns the threads by phase. A thread comes after all threads that system-synchronizes-with orders before
/// it, and otherwise as early as possible.
fn thread_phases(test: &Test) -> Result<Vec<Vec<ThreadId>>, Rule> {
    let count = test.threads.len();
    let mut phase_of = vec![0_usize; count];
    // Each iteration extends the longest correct chain; without a cycle, no chain has as many links as
    // threads.
    for _ in 0..count {
        for pair in &test.system_sync {
            let (from, to) = (usize::from(pair.from.thread.0), usize::from(pair.to.thread.0));
            Rule::SynchronizedWithItself.when(from == to)?;
            if let (Some(earlier), Some(later)) = (phase_of.get(from).copied(), phase_of.get_mut(to)) {
                *later = (*later).max(earlier + 1);
            }
        }
    }
    let last = phase_of.iter().copied().max().unwrap_or(0);
    Rule::CyclicDispatches.when(last >= count.max(1))?;
    let of_phase = |phase: usize| -> Vec<ThreadId> {
        let threads = phase_of.iter().enumerate().filter(|(_, own)| **own == phase);
        threads.map(|(thread, _)| ThreadId(thread as u16)).collect()
    };
    Ok((0..=last).map(of_phase).collect())
}

/// Checks threads of one workgroup that a device runs in several. That is valid for threads that communicate
/// only in queue-family scope, without control barriers and workgroup memory.
fn check_workgroups(test: &Test, phases: &[Vec<ThreadId>]) -> Result<(), Rule> {
    let phase_of = |thread: usize| {
        phases.iter().position(|threads| threads.iter().any(|id| usize::from(id.0) == thread))
    };
    for (number, thread) in test.threads.iter().enumerate() {
        for (other, second) in test.threads.iter().enumerate().skip(number + 1) {
            Rule::WorkgroupInSeveralDispatches.when(
                phase_of(number) != phase_of(other)
                    && thread.place.shares_scope(second.place, Scope::Workgroup)
                    && (is_workgroup_local(thread) || is_workgroup_local(second)),
            )?;
        }
    }
    // A storage in workgroup memory ends with its workgroup.
    let mut homes: Vec<Option<usize>> = vec![None; test.locations.len()];
    for (number, thread) in test.threads.iter().enumerate() {
        for location in workgroup_locations(thread) {
            let storage = usize::from(test.storage_of(location).0);
            let Some(home) = homes.get_mut(storage) else { continue };
            Rule::WorkgroupInSeveralDispatches
                .when(*home.get_or_insert(phase_of(number).unwrap_or(0)) != phase_of(number).unwrap_or(0))?;
        }
    }
    Ok(())
}

fn workgroup_locations(thread: &Thread) -> impl Iterator<Item = LocationId> {
    let accesses = thread.instructions.iter().filter_map(|instruction| instruction.kind.access());
    let locals = accesses.filter(|access| access.place.class == StorageClass::Workgroup);
    locals.map(|access| access.place.location)
}

/// Returns true if the thread interacts within its workgroup only.
fn is_workgroup_local(thread: &Thread) -> bool {
    let is_narrow = |scope: &Scope| matches!(scope, Scope::Subgroup | Scope::Workgroup);
    workgroup_locations(thread).next().is_some()
        || thread.instructions.iter().any(|instruction| {
            instruction.kind.execution_scope().is_some()
                || instruction.kind.memory_scope().as_ref().is_some_and(is_narrow)
        })
}

/// Returns true if no call separates the threads of a workgroup on its queue, so that they are one dispatch.
fn forms_whole_dispatches(test: &Test, schedule: &Schedule) -> bool {
    let workgroup = |item: &ScheduledItem| match item {
        ScheduledItem::Dispatch(thread) => {
            let place = test.thread(*thread).place.device_placement()?;
            place.scope_instance(Scope::Workgroup)
        }
        ScheduledItem::Barrier(_)
        | ScheduledItem::Set(..)
        | ScheduledItem::Await(..)
        | ScheduledItem::Signal(..)
        | ScheduledItem::Wait(..)
        | ScheduledItem::Release(..)
        | ScheduledItem::Acquire(..) => None,
    };
    schedule.queues.iter().all(|queue| {
        let mut seen = Vec::new();
        let mut last = None;
        queue.items.iter().map(workgroup).all(|own| {
            let is_repeated = own.is_some() && own != last && seen.contains(&own);
            seen.push(own);
            last = own;
            !is_repeated
        })
    })
}

/// Returns the points that vertices after this part place. Fragments and vertices share a draw unless the
/// pipelines are split.
fn fragment_points(before: &ProgramKernel, queue: u32, pipelines: Pipelines) -> Option<FragmentPoints> {
    let Carrier::Fragment { layout: cells, .. } = before.kernel.carrier else { return None };
    let shares_draw = before.queue == queue && pipelines == Pipelines::Merged;
    shares_draw
        .then(|| FragmentPoints { layout: cells, workgroups_per_group: before.kernel.workgroups_per_group() })
}

/// Returns the threads by stage, fragments first.
fn group_by_stage(stage: CarrierStage, threads: &[ThreadId]) -> Vec<Vec<ThreadId>> {
    let threads_of_stage = |wanted: CarrierStage| -> Vec<ThreadId> {
        let own = |thread: &&ThreadId| stage.for_thread(usize::from(thread.0)) == wanted;
        threads.iter().filter(own).copied().collect()
    };
    [CarrierStage::Fragment, CarrierStage::Vertex]
        .map(threads_of_stage)
        .into_iter()
        .filter(|own| !own.is_empty())
        .collect()
}

/// Returns the threads by workgroup, in the order of the first of each.
fn group_by_workgroup(test: &Test, threads: &[ThreadId]) -> Vec<Vec<ThreadId>> {
    let mut groups: Vec<Vec<ThreadId>> = Vec::new();
    for id in threads {
        let thread = test.thread(*id);
        let home = groups.iter_mut().find(|group| {
            group
                .first()
                .is_some_and(|first| test.thread(*first).place.shares_scope(thread.place, Scope::Workgroup))
        });
        match home {
            Some(group) => group.push(*id),
            None => groups.push(vec![*id]),
        }
    }
    groups
}
