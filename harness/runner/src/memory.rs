//! The device plan of a run: per-submission initialization and checks of its execution. `build` makes the plan.

mod build;
mod images;

use build::PlanBuilder;
pub(crate) use build::PlanRequest;
use images::ProgramImages;
use plan::{
    BufferId, BufferMemory, Capabilities, DependencyKind, DeviceError, Plan, PlanStep, Prepared, Queue,
    QueueId, StageMask,
};
use shaders::classify::{self, BufferRole, ClassifierKernel};
use shaders::contract::FIRST_RECEIPT;
use shaders::stress::StressKernel;
use shaders::variant::SubgroupSize;
use shaders::{
    CompiledKernel, Parameters, Program, ProgramKernel, SaltedMemory, SaltedPath, StressParameters,
};

use crate::completion_marker::CompletionMarker;
use crate::dispatch::{Execution, Workgroups};
use crate::graphics_draw::{self, ClaimBuffers, DrawMapping};
use crate::host_copy::{BufferPrefix, HostCopy};
use crate::initial::{InitialBuffer, InitialValues, MemorySalts};
use crate::readback::{CheckedWords, LocationWord, ReadbackCheck};
use crate::sampling::KernelLimits;

const QUEUE: QueueId = QueueId(0);
pub(crate) const LOCATIONS: BufferId = BufferId(0);
const RESULTS: BufferId = BufferId(1);
const INITIAL: BufferId = BufferId(2);
const RESULTS_BACK: BufferId = BufferId(3);
const LOCATIONS_BACK: BufferId = BufferId(4);
// These share their ids with `INITIAL` and `RESULTS_BACK`: a plan has either the one pair or the
// other.
/// The counters of a device that counts, and their copy for the host.
const COUNTERS: BufferId = BufferId(2);
const COUNTERS_BACK: BufferId = BufferId(3);

/// How host and kernel share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemorySharing {
    /// The host uses the memory of the kernel directly: only on the simulated GPU. A driver could change
    /// memory that the host has mapped while kernels run.
    Direct,
    /// The device fills its own memory, and copies to and from host memory.
    Copied,
    /// The device resets its own memory and counts, and the host reads only the counters.
    Counted,
}

impl MemorySharing {
    /// Returns the mode for a device and the memory of the locations.
    pub fn for_device(
        capabilities: &Capabilities,
        memory: BufferMemory,
        program: &Program,
        counted: bool,
    ) -> MemorySharing {
        if counted {
            return MemorySharing::Counted;
        }
        let reachable = !matches!(memory, BufferMemory::Typed(_) | BufferMemory::Mapped(_))
            && program.separate_storages().is_empty();
        if capabilities.shares_choices && reachable { MemorySharing::Direct } else { MemorySharing::Copied }
    }
}

/// A plan that dispatches every kernel of a program once, and the positions of its parts.
#[derive(Clone, Debug)]
pub(crate) struct ProgramPlan {
    pub plan: Plan,
    /// Proves complete execution of a submission.
    pub marker: CompletionMarker,
    dispatches: Vec<DispatchStep>,
    /// The step of memory stress on another queue.
    queue_stress_step: Option<usize>,
    /// The dispatch steps of the kernels that reset memory and count.
    helpers: Vec<usize>,
    /// The rendezvous buffer of each phase.
    rendezvous: Vec<BufferId>,
    /// The same buffers for the host, which reads the receipts in them.
    receipts: Vec<BufferId>,
    /// The positions of the receipts of each kernel.
    receipt_positions: Vec<ReceiptPosition>,
    /// The word of each of them that counts invocations outside the grid.
    overflow_words: Vec<usize>,
    /// Buffers with final values outside of the location buffer, and the storages and memory of each.
    pub final_buffers: Vec<FinalBuffer>,
    /// The second location buffer.
    separate_locations: Option<BufferId>,
    /// The claim buffers of drawn kernels.
    pub claims: ClaimBuffers,
    sharing: MemorySharing,
    /// The words of the locations that the host reads.
    location_words: Vec<LocationWord>,
    /// The checksums of initial values, then those of the words that the host reads, with the contents of each
    /// range.
    checks: Vec<(ReadbackCheck, Vec<CheckedWords>)>,
    /// The salts of the submission in flight.
    salts: MemorySalts,
    /// As [`CompiledKernel::lanes`].
    lanes: u32,
    /// The buffers to which the host writes initial values.
    initial_buffers: Vec<InitialBuffer>,
    initial: InitialValues,
}

/// A buffer with final values outside of the location buffer.
#[derive(Clone, Debug)]
pub(crate) struct FinalBuffer {
    /// The copy for the host, or for a device that counts.
    pub buffer: BufferId,
    /// The storages that it has.
    pub storages: Vec<u32>,
    /// The memory that was copied.
    copied: SaltedMemory,
}

#[derive(Clone, Copy, Debug)]
struct DispatchStep {
    step: usize,
    phase: usize,
    /// Workgroup classes of its kernel.
    classes: u32,
    /// Its kernel generates memory stress.
    is_stressed: bool,
    /// The mapping of workgroups to a draw, if it is drawn.
    draw_mapping: Option<DrawMapping>,
}

/// The number of times that a drawn workgroup may leave its receipt.
const MAX_RECEIPT_REPEATS: u32 = 4;

/// The position of a kernel's receipts.
#[derive(Clone, Debug)]
struct ReceiptPosition {
    phase: usize,
    /// Words of the rendezvous area of a group.
    spacing: usize,
    /// The index of the kernel's first receipt, and their number.
    first: usize,
    count: usize,
    /// Its workgroups are drawn.
    is_drawn: bool,
    /// As [`CompiledKernel::identity`].
    identity: u32,
    /// The elements of its [measured](CompiledKernel::measured_bindings) buffers.
    lengths: Vec<u32>,
    /// As [`CompiledKernel::salted_paths`].
    salted: Vec<SaltedPath>,
}

impl ReceiptPosition {
    fn for_program(program: &Program, bounds: &KernelLimits) -> Vec<ReceiptPosition> {
        let lengths = |kernel: &CompiledKernel| {
            let length = |(binding, stride): &(u32, u32)| {
                let words = kernel.bindings.get(*binding as usize).map_or(0, |own| bounds.buffer_words(*own));
                u32::try_from(4 * words / u64::from((*stride).max(1))).unwrap_or(u32::MAX)
            };
            kernel.measured_bindings.iter().map(length).collect()
        };
        let mut all = Vec::with_capacity(program.phases.len());
        for (number, phase) in program.phases.iter().enumerate() {
            let spacing = phase.rendezvous_spacing() as usize;
            all.extend(phase.kernels.iter().map(|ProgramKernel { kernel, .. }| ReceiptPosition {
                phase: number,
                spacing,
                first: (FIRST_RECEIPT + kernel.first_class) as usize,
                count: kernel.workgroups_per_group() as usize,
                is_drawn: DrawMapping::for_kernel(kernel).is_some(),
                identity: kernel.identity,
                lengths: lengths(kernel),
                salted: kernel.salted_paths.clone(),
            }));
        }
        all
    }

    fn expected_receipt(&self, parameters: &Parameters, salts: &MemorySalts) -> u32 {
        let read = self.salted.iter().map(|path| path.expected_value(salts.salt_of(path.memory)));
        let memory: Vec<u32> = self.lengths.iter().copied().chain(read).collect();
        parameters.receipt(self.identity, &memory)
    }

    /// Returns true if a word is the receipt. A drawn workgroup may leave it several times, because a vertex
    /// or fragment may be shaded again. If such an invocation found its slot unclaimed, the claim's
    /// read-modify-write failed, and those of the test will show that too.
    fn is_receipt(&self, found: u32, receipt: u32) -> bool {
        let most = if self.is_drawn { MAX_RECEIPT_REPEATS } else { 1 };
        (1..=most).any(|times| found == receipt.wrapping_mul(times))
    }
}

/// Overwrites the first words of a read-back buffer, if the host can write to it.
fn overwrite_words(prepared: &mut dyn Prepared, buffer: BufferId, words: usize, value: u32) {
    if let Ok(memory) = prepared.write(buffer) {
        prefix_mut(memory, words).fill(value);
    }
}

impl ProgramPlan {
    /// Builds the plan of a request.
    pub fn new(request: PlanRequest<'_>) -> ProgramPlan {
        PlanBuilder::build(request)
    }

    /// Sets the parameters of every dispatch, after [`ProgramPlan::reset`]: `first` for the first phase, `later`
    /// for the others.
    ///
    /// # Errors
    /// None for a plan of this layout.
    pub fn set_parameters(
        &self,
        prepared: &mut dyn Prepared,
        first: &Parameters,
        later: &[Parameters],
        stress: Option<&StressParameters>,
    ) -> Result<(), DeviceError> {
        for DispatchStep { step, phase, is_stressed: stressed, .. } in &self.dispatches {
            let parameters = phase.checked_sub(1).and_then(|phase| later.get(phase)).unwrap_or(first);
            let mut bytes = parameters.to_bytes();
            bytes.extend(stress.filter(|_| *stressed).map(|stress| stress.to_bytes()).unwrap_or_default());
            prepared.set_push_constants(*step, &bytes)?;
        }
        for step in &self.helpers {
            let mut bytes = first.to_bytes();
            bytes.extend(self.salts.salt_of(SaltedMemory::Locations).to_le_bytes());
            prepared.set_push_constants(*step, &bytes)?;
        }
        Ok(())
    }

    /// Adds a dispatch of memory stress before all others, with its own queue and scratch memory.
    pub fn add_queue_stress(
        &mut self,
        kernel: &StressKernel,
        capabilities: &Capabilities,
        scratch_words: u64,
    ) {
        // A queue of another family if there is one: queues of one family may share hardware and alternate.
        let family = u32::from(capabilities.compute_queues.len() > 1);
        let queue = QueueId(self.plan.queues.len() as u32);
        self.plan.queues.push(Queue { family });
        let scratch = self.plan.add_buffer(scratch_words, BufferMemory::Device, "scratch of the other queue");
        let number = self.plan.add_kernel(plan::Kernel {
            words: kernel.words.clone(),
            bindings: 1,
            push_constant_bytes: StressParameters::BYTES,
            ..plan::Kernel::default()
        });
        let dispatch = PlanStep::Dispatch {
            queue,
            kernel: number,
            workgroups: 1,
            bindings: vec![scratch],
            push_constants: StressParameters { chunk: 1, lines: 1, words: 1, ..Default::default() }
                .to_bytes(),
        };
        let steps = [dispatch, PlanStep::Submit { queue }];
        // The new steps are inserted at the start, so that all recorded positions move.
        let own = self.dispatches.iter_mut().map(|dispatch| &mut dispatch.step);
        let checks = self.checks.iter_mut().flat_map(|(check, _)| check.dispatch_steps());
        own.chain(&mut self.helpers).chain(checks).for_each(|step| *step += steps.len());
        self.plan.steps.splice(0..0, steps);
        self.queue_stress_step = Some(0);
    }

    /// Sets workgroups and parameters of the stress dispatch; workgroups only if the device supports that.
    ///
    /// # Errors
    /// None for a plan of this layout.
    pub fn set_queue_stress(
        &self,
        prepared: &mut dyn Prepared,
        workgroups: u32,
        parameters: &StressParameters,
    ) -> Result<(), DeviceError> {
        let Some(step) = self.queue_stress_step else { return Ok(()) };
        match prepared.set_workgroups(step, workgroups) {
            Ok(()) | Err(DeviceError::Unsupported(_)) => {}
            Err(error) => return Err(error),
        }
        prepared.set_push_constants(step, &parameters.to_bytes())
    }

    /// Changes the number of workgroups of every dispatch.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] if the device cannot, before the first change.
    pub fn set_workgroups(
        &self,
        prepared: &mut dyn Prepared,
        workgroups: Workgroups,
    ) -> Result<(), DeviceError> {
        for DispatchStep { step, classes, draw_mapping: drawn, .. } in &self.dispatches {
            match drawn {
                None => prepared.set_workgroups(*step, workgroups.for_classes(*classes))?,
                Some(drawn) => prepared.set_drawing(*step, drawn.to_drawing(*classes, workgroups))?,
            }
        }
        Ok(())
    }

    /// Resets memory for a submission with `parameters`.
    ///
    /// # Errors
    /// If the device does not let the host write.
    pub fn reset(
        &mut self,
        prepared: &mut dyn Prepared,
        parameters: &Parameters,
        instances: usize,
        slots: usize,
    ) -> Result<(), DeviceError> {
        self.marker.clear(prepared)?;
        self.salts.renew();
        for source in &mut self.initial_buffers {
            source.reset(prepared, &self.initial, &self.salts, parameters, instances)?;
        }
        for (check, checked) in &mut self.checks {
            let unit_words = self.initial.storage_words;
            let ranges =
                checked.iter().map(|words| words.word_range(parameters, instances, slots, unit_words));
            check.set_ranges(prepared, ranges)?;
        }
        match self.sharing {
            MemorySharing::Direct => {
                prefix_mut(prepared.write(RESULTS)?, slots * instances).fill(parameters.poison);
                for (phase, buffer) in self.rendezvous.iter().enumerate() {
                    let used = parameters.groups as usize * self.rendezvous_spacing(phase);
                    prefix_mut(prepared.write(*buffer)?, used).fill(0);
                }
                self.claims.clear(prepared)?;
                // Texels that are not copied then have no values of an earlier dispatch.
                let used = self.used_location_words(parameters, instances);
                for copy in &self.final_buffers {
                    overwrite_words(prepared, copy.buffer, used, parameters.poison);
                }
            }
            MemorySharing::Copied => {
                // The device fills its own memory. If it skips that and everything else, the data of the last
                // dispatch must not be in the read-back buffers.
                overwrite_words(prepared, RESULTS_BACK, slots * instances, parameters.poison);
                let used = self.used_location_words(parameters, instances);
                let elsewhere = self.final_buffers.iter().map(|copy| copy.buffer);
                let locations = elsewhere.chain((!self.location_words.is_empty()).then_some(LOCATIONS_BACK));
                locations.for_each(|buffer| overwrite_words(prepared, buffer, used, parameters.poison));
                self.clear_receipts(prepared, parameters.groups);
            }
            // Zero counters are never the right counts.
            MemorySharing::Counted => {
                overwrite_words(prepared, COUNTERS_BACK, usize::MAX, 0);
                self.clear_receipts(prepared, parameters.groups);
            }
        }
        Ok(())
    }

    /// Returns the number of words of location memory up to the salts.
    fn used_location_words(&self, parameters: &Parameters, instances: usize) -> usize {
        (instances + 1) * parameters.stride as usize * self.initial.storage_words
    }

    /// Returns true if copies of final values outside of the location buffer contain their salts. After an
    /// omitted or shifted copy of an image it reads other words there.
    ///
    /// # Errors
    /// If the device does not let the host read.
    fn are_copies_salted(&self, copied: &HostCopy, parameters: &Parameters) -> Result<bool, DeviceError> {
        let instances = parameters.instance_count(self.lanes);
        for FinalBuffer { buffer, storages, copied: memory } in
            self.final_buffers.iter().filter(|_| !self.is_counted())
        {
            let salt = self.salts.salt_of(*memory);
            let words = copied.words(*buffer)?;
            let mut places =
                storages.iter().map(|storage| parameters.unit_index(instances, *storage) as usize);
            if !places.all(|unit| words.get(unit * self.initial.storage_words) == Some(&salt)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Clears the receipts of an earlier submission in host memory.
    fn clear_receipts(&self, prepared: &mut dyn Prepared, groups: u32) {
        for (phase, buffer) in self.receipts.iter().enumerate() {
            overwrite_words(prepared, *buffer, groups as usize * self.rendezvous_spacing(phase), 0);
        }
    }

    /// Returns the words of the rendezvous area of a group in a phase.
    fn rendezvous_spacing(&self, phase: usize) -> usize {
        self.receipt_positions.iter().find(|signed| signed.phase == phase).map_or(1, |signed| signed.spacing)
    }

    /// Returns everything that the host reads after a submission of `instances`.
    pub fn read_prefixes(
        &self,
        parameters: &Parameters,
        instances: usize,
        slots: usize,
    ) -> Vec<BufferPrefix> {
        let (results, locations) = self.readback_buffers();
        let used = self.used_location_words(parameters, instances);
        let mut prefixes = match self.is_counted() {
            true => vec![BufferPrefix::whole(COUNTERS_BACK)],
            false => {
                let location = (!self.location_words.is_empty()).then_some(locations);
                let elsewhere = self.final_buffers.iter().map(|copy| copy.buffer);
                let locations = location.into_iter().chain(elsewhere);
                let results = BufferPrefix { buffer: results, words: slots * instances };
                std::iter::once(results)
                    .chain(locations.map(|buffer| BufferPrefix { buffer, words: used }))
                    .collect()
            }
        };
        prefixes.extend(self.receipts.iter().copied().map(BufferPrefix::whole));
        prefixes.extend(self.checks.iter().map(|(check, _)| check.sums()));
        prefixes.extend(self.marker.prefixes());
        prefixes
    }

    /// Checks the receipts and overflow words of all phases, then salts and checksums. Each workgroup leaves its
    /// receipt once; in a draw it may do so several times.
    ///
    /// # Errors
    /// If a buffer was not copied.
    pub fn check_execution(
        &self,
        copied: &HostCopy,
        parameters: &[Parameters],
    ) -> Result<Execution, DeviceError> {
        for signed @ ReceiptPosition { phase, spacing, first, count, .. } in &self.receipt_positions {
            let (Some(buffer), Some(of_phase)) = (self.receipts.get(*phase), parameters.get(*phase)) else {
                return Ok(Execution::Incomplete);
            };
            let (receipt, groups) = (signed.expected_receipt(of_phase, &self.salts), of_phase.groups);
            let places = copied.words(*buffer)?.chunks_exact((*spacing).max(1));
            let all = |place: &[u32]| {
                let own = place.get(*first..).and_then(|own| own.get(..*count));
                own.is_some_and(|own| own.iter().all(|found| signed.is_receipt(*found, receipt)))
            };
            if places.len() < groups as usize || !places.take(groups as usize).all(all) {
                return Ok(Execution::Incomplete);
            }
        }
        let mut outside = 0;
        for (buffer, word) in self.receipts.iter().zip(&self.overflow_words) {
            let Some(found) = copied.words(*buffer)?.get(*word) else { return Ok(Execution::Incomplete) };
            outside += u64::from(*found);
        }
        if outside > 0 {
            return Ok(Execution::Excessive { outside });
        }
        if let Some(first) = parameters.first()
            && !self.are_copies_salted(copied, first)?
        {
            return Ok(Execution::Incomplete);
        }
        for (check, _) in &self.checks {
            if !check.matches(copied)? {
                return Ok(Execution::Misread);
            }
        }
        Ok(Execution::AsRequested)
    }

    /// Returns the salt that the counting kernel reads in a buffer.
    pub fn counted_salt(&self, role: BufferRole) -> u32 {
        self.salts.salt_of(match role {
            BufferRole::Texels => {
                self.final_buffers.first().map_or(SaltedMemory::Locations, |copy| copy.copied)
            }
            BufferRole::Locations | BufferRole::Results | BufferRole::Counters => SaltedMemory::Locations,
        })
    }

    /// Returns the words of a unit of location memory.
    pub fn storage_words(&self) -> usize {
        self.initial.storage_words
    }

    pub fn location_buffers(&self) -> impl Iterator<Item = BufferId> {
        std::iter::once(LOCATIONS).chain(self.separate_locations)
    }

    /// Returns true if the host reads copies, whose destinations held poison.
    pub fn is_copied(&self) -> bool {
        self.sharing == MemorySharing::Copied
    }

    /// Returns true if the device counts, so that its memory is not read back.
    pub fn is_counted(&self) -> bool {
        self.sharing == MemorySharing::Counted
    }

    /// Returns the read-back buffer of the counters.
    pub fn counters_readback(&self) -> BufferId {
        COUNTERS_BACK
    }

    /// Returns the buffers of results and locations for the host; it cannot map them if the device counts.
    pub fn readback_buffers(&self) -> (BufferId, BufferId) {
        match self.sharing {
            MemorySharing::Direct | MemorySharing::Counted => (RESULTS, LOCATIONS),
            MemorySharing::Copied => (RESULTS_BACK, LOCATIONS_BACK),
        }
    }
}

/// Transfers a buffer between queues of different families, after all queues have finished earlier work.
fn transfer_ownership(program: &Program, buffer: BufferId, from: QueueId, to: QueueId) -> Vec<PlanStep> {
    let family = |queue: QueueId| program.queues.get(queue.0 as usize);
    if family(from) == family(to) {
        return Vec::new();
    }
    vec![
        PlanStep::Release { queue: from, buffer, to },
        PlanStep::HostWait { queue: QUEUE },
        PlanStep::Acquire { queue: to, buffer, from },
    ]
}

/// Returns a barrier with the test's access masks, or `None` if they are empty.
fn access_mask_barrier(queue: QueueId, dependency: shaders::Dependency) -> Option<PlanStep> {
    let (available, visible) = (dependency.available, dependency.visible);
    let kind = DependencyKind::Barrier;
    let any = !(available.is_empty() && visible.is_empty());
    let of = |accesses| StageMask::COMPUTE.with(StageMask::for_accesses(accesses));
    let stages = (of(available), of(visible));
    any.then_some(PlanStep::Dependency { queue, kind, stages, available, visible })
}

/// Returns the buffer of a helper's binding.
fn buffer_of_role(role: BufferRole, texels: BufferId) -> BufferId {
    match role {
        BufferRole::Results => RESULTS,
        BufferRole::Counters => COUNTERS,
        BufferRole::Locations => LOCATIONS,
        BufferRole::Texels => texels,
    }
}

fn helper_kernel(helper: &ClassifierKernel) -> plan::Kernel {
    plan::Kernel {
        words: helper.words.clone(),
        bindings: u32::try_from(helper.bindings.len()).unwrap_or(u32::MAX),
        push_constant_bytes: classify::PUSH_CONSTANT_BYTES,
        ..plan::Kernel::default()
    }
}

fn to_plan_kernel(kernel: &CompiledKernel, images: &ProgramImages, apart: Option<BufferId>) -> plan::Kernel {
    let addressed = std::iter::once(LOCATIONS).chain(apart).filter(|_| kernel.uses_addresses);
    plan::Kernel {
        words: kernel.words.clone(),
        bindings: u32::try_from(kernel.bindings.len()).unwrap_or(u32::MAX),
        images: kernel.images.iter().filter_map(|binding| images.image_id(*binding)).collect(),
        push_constant_bytes: kernel.push_constant_bytes(),
        addresses: addressed.collect(),
        subgroups: subgroup_requirements(kernel),
        stage: graphics_draw::kernel_stage(kernel),
        interface: None,
    }
}

/// Returns the subgroup requirements of a kernel's pipeline.
pub fn subgroup_requirements(kernel: &CompiledKernel) -> plan::Subgroups {
    let requirements = &kernel.requirements;
    match (requirements.subgroup_size, requirements.required_size) {
        (Some(size), _) => plan::Subgroups::Full(size),
        (None, Some(size)) => plan::Subgroups::Required(size),
        (None, None) if kernel.variant.subgroup_size == SubgroupSize::Varying => plan::Subgroups::Varying,
        (None, None) => plan::Subgroups::Any,
    }
}

fn prefix_mut(words: &mut [u32], count: usize) -> &mut [u32] {
    let count = count.min(words.len());
    &mut words[..count]
}
