//! Builds the device plan of a run: buffers, per-submission initialization, dispatches and read-back.
//!
//! Long because one function builds the plan for every variant, in the order of its steps.

use std::collections::BTreeMap;

use plan::{
    Buffer, BufferId, BufferMemory, Capabilities, DependencyKind, DeviceError, Hosts, Image, ImageFormat,
    ImageId, ImageShape, KernelId, Plan, PlanStep, Prepared, Queue, QueueId, Semaphore, SemaphoreId,
    StageMask,
};
use shaders::classify::{self, BufferRole, ClassifierKernel};
use shaders::contract::{FIRST_RECEIPT, IMAGE_WIDTH};
use shaders::draw::DrawModules;
use shaders::host::SubmissionStart;
use shaders::stress::StressKernel;
use shaders::variant::{ImageForm as Shape, SubgroupSize};
use shaders::{
    Binding, CompiledKernel, ImageBinding, Parameters, Program, ProgramKernel, SaltedMemory, SaltedPath,
    StressParameters,
};

use crate::calls::{self, OrderedCall};
use crate::classify::Classifier;
use crate::completion_marker::CompletionMarker;
use crate::dispatch::{Execution, Workgroups};
use crate::graphics_draw::{self, ClaimBuffers, DrawMapping};
use crate::host_copy::{BufferPrefix, HostCopy};
use crate::initial::{InitialBuffer, InitialValues, MemorySalts, value_word};
use crate::join::Join;
use crate::readback::{CheckedWords, ExpectedWords, LocationWord, ReadBuffer, ReadbackCheck};
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
    /// Builds the plan that runs `program`, with result memory full of `poison`. It reads back
    /// `location_words`, with checksums if `verified`, also over `guards` and their final values.
    pub fn new(
        (program, hosts): (&Program, Option<Hosts>),
        (join, memory): (Join, BufferMemory),
        bounds: &KernelLimits,
        workgroups: Workgroups,
        (sharing, classifier): (MemorySharing, Option<&Classifier>),
        (location_words, verified, guards): (&[LocationWord], bool, &[(LocationWord, u32)]),
        poison: u32,
    ) -> ProgramPlan {
        let with_locations = !location_words.is_empty();
        let buffer = |words, memory, name| Buffer { words, memory, name };
        // A driver may write to mapped memory at any time.
        let private = match sharing {
            MemorySharing::Direct => BufferMemory::Device,
            MemorySharing::Copied | MemorySharing::Counted => BufferMemory::Private,
        };
        let memory = if memory == BufferMemory::Device { private } else { memory };
        let device = |words, name| buffer(words, private, name);
        let all_location_words = bounds.location_words();
        // If a variant separates locations, only these have the requested memory; the others have device
        // memory.
        let is_apart = !program.separate_storages().is_empty();
        let location_memory = if is_apart && !program.has_separate_owned { private } else { memory };
        let mut buffers = vec![
            buffer(all_location_words, location_memory, "locations"),
            device(bounds.result_buffer_words(), "results"),
        ];
        if sharing == MemorySharing::Copied {
            buffers.push(buffer(all_location_words, BufferMemory::Shared, "initial values"));
            buffers.push(buffer(
                bounds.result_buffer_words(),
                BufferMemory::Readback,
                "results for the host",
            ));
            if with_locations {
                buffers.push(buffer(all_location_words, BufferMemory::Readback, "locations for the host"));
            }
        }
        if let Some(classifier) = classifier {
            buffers.push(device(classifier.buffer_words(), "counters"));
            buffers.push(buffer(classifier.buffer_words(), BufferMemory::Readback, "counters for the host"));
        }
        // Images get the initial values of all locations from the location buffer.
        let mut final_buffers: Vec<FinalBuffer> = Vec::new();
        let mut back = |buffers: &mut Vec<Buffer>, storages: Vec<u32>, copied, name| {
            let id = BufferId(buffers.len() as u32);
            // A device that counts reads them itself.
            let memory = if classifier.is_some() { private } else { BufferMemory::Readback };
            buffers.push(buffer(all_location_words, memory, name));
            final_buffers.push(FinalBuffer { buffer: id, storages, copied });
            id
        };
        let mut separate_locations = None;
        let mut separate_readback = None;
        if is_apart {
            separate_locations = Some(BufferId(buffers.len() as u32));
            buffers.push(buffer(all_location_words, memory, "separate locations"));
            if with_locations {
                let (storages, name) =
                    (program.separate_storages().to_vec(), "separate locations for the host");
                separate_readback = Some(back(&mut buffers, storages, SaltedMemory::SeparateLocations, name));
            }
        }
        let images = ProgramImages::for_program(
            program,
            all_location_words,
            (location_memory, memory),
            separate_locations,
        );
        // The second location buffer and further images have other salts than the location buffer, so they get
        // their initial values from other buffers.
        let mut sources: Vec<InitialBuffer> = match sharing {
            MemorySharing::Direct => vec![InitialBuffer::new(LOCATIONS, 0, true)],
            MemorySharing::Copied => vec![InitialBuffer::new(INITIAL, 0, false)],
            MemorySharing::Counted => Vec::new(),
        };
        let mut numbered: Vec<(SaltedMemory, u32)> = Vec::new();
        let mut source_of = |buffers: &mut Vec<Buffer>, memory: SaltedMemory| {
            let (id, number) = (BufferId(buffers.len() as u32), numbered.len() as u32 + 1);
            buffers.push(buffer(all_location_words, BufferMemory::Shared, "more initial values"));
            sources.push(InitialBuffer::new(id, number, false));
            numbered.push((memory, number));
            id
        };
        let apart_source =
            separate_locations.map(|_| source_of(&mut buffers, SaltedMemory::SeparateLocations));
        let mut filled_images: Vec<(ImageId, BufferId)> = Vec::new();
        for (image, binding) in images.non_texel_images() {
            let from = match filled_images.is_empty() {
                true => LOCATIONS,
                false => source_of(&mut buffers, SaltedMemory::Image(binding)),
            };
            filled_images.push((image, from));
        }
        // The contents of each image before the kernels.
        let image_contents: Vec<BufferId> = (buffers.len() as u32..)
            .take(if verified { filled_images.len() } else { 0 })
            .map(BufferId)
            .collect();
        buffers.extend(image_contents.iter().map(|_| device(all_location_words, "contents of an image")));
        images.add_salted_views(&mut numbered);
        let mut texels = Vec::new();
        for (image, binding, storages) in
            images.final_value_images(program).into_iter().filter(|_| with_locations)
        {
            let copied = SaltedMemory::Image(binding);
            texels.push((image, back(&mut buffers, storages, copied, "texels for the host")));
        }
        let first_rendezvous = buffers.len() as u32;
        let rendezvous: Vec<BufferId> =
            (first_rendezvous..).take(program.phases.len()).map(BufferId).collect();
        buffers.extend(rendezvous.iter().map(|_| device(bounds.rendezvous_words, "rendezvous")));
        let scratch = BufferId(buffers.len() as u32);
        if bounds.scratch_words > 0 {
            buffers.push(device(bounds.scratch_words, "scratch"));
        }

        // In the order of the kernels.
        let mut claims = ClaimBuffers::new(bounds.claim_words, private);
        let claimed: Vec<Option<BufferId>> =
            program.kernels().map(|kernel| claims.add(kernel, &mut buffers)).collect();
        let mut claimed = claimed.into_iter();
        let mut receipts = rendezvous.clone();
        if sharing != MemorySharing::Direct {
            receipts = (buffers.len() as u32..).take(rendezvous.len()).map(BufferId).collect();
            let back = buffer(bounds.rendezvous_words, BufferMemory::Readback, "receipts for the host");
            buffers.extend(rendezvous.iter().map(|_| back.clone()));
        }

        // The steps have three parts: initial values, the phases with their dispatches, and reading
        // back.
        let to_host = |buffer| PlanStep::ToHost { queue: QUEUE, buffer };
        let copy = |from, to| PlanStep::Copy { queue: QUEUE, from, to };
        let barrier = PlanStep::Barrier { queue: QUEUE };
        let mut steps = Vec::new();
        let mut kernels = Vec::new();
        let mut helpers = Vec::new();
        let poisoned = |buffer| PlanStep::Fill { queue: QUEUE, buffer, value: poison };
        let zeroed = |buffer: &BufferId| PlanStep::Fill { queue: QUEUE, buffer: *buffer, value: 0 };
        let first_texels = texels.first().map_or(LOCATIONS, |(_, buffer)| *buffer);
        let helper = |helper: &ClassifierKernel, kernel: usize, workgroups| PlanStep::Dispatch {
            queue: QUEUE,
            kernel: KernelId(kernel as u32),
            workgroups,
            bindings: helper.bindings.iter().map(|shown| buffer_of_role(*shown, first_texels)).collect(),
            push_constants: vec![0; classify::PUSH_CONSTANT_BYTES as usize],
        };
        if sharing == MemorySharing::Copied {
            steps.push(PlanStep::Fill { queue: QUEUE, buffer: RESULTS, value: poison });
            steps.extend(rendezvous.iter().chain(claims.buffers()).map(zeroed));
            // An incomplete copy then leaves poison, not values of an earlier dispatch.
            let locations = || std::iter::once(LOCATIONS).chain(separate_locations);
            steps.extend(locations().map(poisoned));
            steps.push(barrier.clone());
            steps.push(copy(INITIAL, LOCATIONS));
            steps.extend(apart_source.zip(separate_locations).map(|(from, to)| copy(from, to)));
            steps.push(barrier.clone());
        }
        if let Some(classifier) = classifier {
            steps.extend(rendezvous.iter().chain(claims.buffers()).chain([&COUNTERS]).map(zeroed));
            // Texels that are not copied then have no values of an earlier dispatch.
            steps.extend(texels.iter().map(|(_, buffer)| poisoned(*buffer)));
            steps.push(barrier.clone());
            helpers.push(steps.len());
            steps.extend([helper(&classifier.reset, kernels.len(), classifier.workgroups), barrier.clone()]);
            kernels.push(helper_kernel(&classifier.reset));
        }
        if !filled_images.is_empty() {
            let filled = filled_images.iter();
            steps.extend(filled.map(|(to, from)| PlanStep::ToImage { queue: QUEUE, from: *from, to: *to }));
            steps.extend(image_contents.iter().copied().map(poisoned));
            steps.push(barrier.clone());
        }
        if !image_contents.is_empty() {
            let images = filled_images.iter().map(|(image, _)| *image).zip(image_contents.iter().copied());
            steps.extend(images.map(|(from, to)| PlanStep::FromImage { queue: QUEUE, from, to }));
            steps.push(barrier.clone());
        }
        let initialized_at = steps.len();
        // Queue 0 initializes and reads back memory; the host synchronizes it with the other queues.
        let queues: Vec<QueueId> = (0..program.queues.len() as u32).map(QueueId).collect();
        let several = queues.len() > 1 && hosts.is_none();
        // With the calls of the test, its schedule orders the steps.
        let ordered = match (join, &program.schedule, separate_locations) {
            (Join::Calls, Some(schedule), apart) => {
                calls::order_calls(program, schedule, apart.unwrap_or(LOCATIONS)).ok()
            }
            _ => None,
        };
        // The queues that use the owned memory first and last.
        let owned = separate_locations.filter(|_| program.has_separate_owned && several);
        let users =
            owned.zip(ordered.as_ref()).and_then(|(_, ordered)| calls::owned_memory_users(ordered, program));
        if hosts.is_some() {
            steps.push(PlanStep::Hosts { queue: QUEUE });
        } else if several {
            steps.extend(
                owned
                    .zip(users)
                    .into_iter()
                    .flat_map(|(buffer, (first, _))| transfer_ownership(program, buffer, QUEUE, first)),
            );
            steps.push(PlanStep::HostWait { queue: QUEUE });
        }
        let mut dispatches = Vec::new();
        let mut semaphores = Vec::new();
        // The dispatch of each part, in the order of the kernels.
        let mut made: Vec<Vec<(PlanStep, DispatchStep)>> = Vec::with_capacity(program.phases.len());
        for (number, (phase, meeting)) in program.phases.iter().zip(&rendezvous).enumerate() {
            let parts = graphics_draw::group_launches(&phase.kernels).into_iter().map(|(part, vertices)| {
                let classes = part.kernel.workgroups_per_group();
                let stressed = part.kernel.is_stressed();
                let drawn = DrawMapping::for_kernel(&part.kernel);
                let claims = claimed.next().flatten();
                let (queue, kernel) = (QueueId(part.queue), KernelId(kernels.len() as u32));
                let buffer = |binding: &Binding, claims| {
                    buffer_of(*binding, (*meeting, claims), separate_locations, scratch)
                };
                let bindings: Vec<BufferId> =
                    part.kernel.bindings.iter().map(|binding| buffer(binding, claims)).collect();
                let push_constants = vec![0; part.kernel.push_constant_bytes() as usize];
                let own = to_plan_kernel(&part.kernel, &images, separate_locations);
                let (own, bindings, drawn) = match (vertices, drawn) {
                    // Vertex and fragment kernel of one pipeline become one draw; each keeps its
                    // own claims.
                    (Some(ProgramKernel { kernel: vertices, .. }), Some(drawn)) => {
                        let draw_modules = DrawModules::combine(vertices, &part.kernel);
                        let of_vertices = claimed.next().flatten();
                        let claims = |of_vertex: bool| if of_vertex { of_vertices } else { claims };
                        let bindings = draw_modules.bindings.iter().map(|(own, of)| buffer(own, claims(*of)));
                        let bindings: Vec<BufferId> = bindings.collect();
                        // Addresses have one position in the push constants, whichever kernel uses them.
                        let addresses = [&own, &to_plan_kernel(vertices, &images, separate_locations)]
                            .into_iter()
                            .max_by_key(|kernel| kernel.addresses.len())
                            .map(|kernel| kernel.addresses.clone())
                            .unwrap_or_default();
                        let images = draw_modules
                            .images
                            .iter()
                            .filter_map(|binding| images.image_id(*binding))
                            .collect();
                        let own = plan::Kernel {
                            images,
                            addresses,
                            ..graphics_draw::combined_kernel(own, &draw_modules)
                        };
                        (own, bindings, Some(drawn.with_vertices(vertices)))
                    }
                    _ => (own, bindings, drawn),
                };
                kernels.push(own);
                let step = match drawn {
                    None => {
                        let workgroups = workgroups.for_classes(classes);
                        PlanStep::Dispatch { queue, kernel, workgroups, bindings, push_constants }
                    }
                    Some(drawn) => {
                        let drawing = drawn.to_drawing(classes, workgroups);
                        PlanStep::Draw { queue, kernel, drawing, bindings, push_constants }
                    }
                };
                (
                    step,
                    DispatchStep {
                        step: 0,
                        phase: number,
                        classes,
                        is_stressed: stressed,
                        draw_mapping: drawn,
                    },
                )
            });
            made.push(parts.collect());
        }
        let mut put = |steps: &mut Vec<PlanStep>, (step, dispatch): (PlanStep, DispatchStep)| {
            dispatches.push(DispatchStep { step: steps.len(), ..dispatch });
            steps.push(step);
        };
        if let Some(ordered) = ordered {
            let parts = program.phases.iter().flat_map(|phase| &phase.kernels);
            let mut parts: Vec<_> = parts.zip(made.into_iter().flatten().map(Some)).collect();
            semaphores = ordered.semaphores;
            // The phase of the last dispatch of each queue.
            let mut last: BTreeMap<QueueId, usize> = BTreeMap::new();
            for item in ordered.items {
                match item {
                    OrderedCall::Call(step) => steps.push(step),
                    OrderedCall::Dispatch(thread) => {
                        let part = parts.iter_mut().find(|(part, _)| part.threads.contains(&thread));
                        if let Some(own) = part.and_then(|(_, own)| own.take()) {
                            // Unordered dispatches get separate command buffers, as below.
                            let (queue, phase) = (own.0.queue(), own.1.phase);
                            if last.insert(queue, phase) == Some(phase) {
                                steps.push(PlanStep::CommandBuffer { queue });
                            }
                            put(&mut steps, own);
                        }
                    }
                }
            }
        } else {
            for (number, (phase, parts)) in program.phases.iter().zip(made).enumerate() {
                let part_queue = phase.kernels.first().map_or(QUEUE, |part| QueueId(part.queue));
                if hosts.is_some() {
                    steps.push(PlanStep::Batch { queue: part_queue, number: number as u32 });
                    let start = program.hosts.as_ref().and_then(|hosts| hosts.submission_starts.get(number));
                    // Its submission waits for a semaphore that a host thread signals.
                    if start == Some(&SubmissionStart::Held) {
                        let semaphore = SemaphoreId(semaphores.len() as u32);
                        semaphores.push(Semaphore::Timeline);
                        steps.push(PlanStep::Wait { queue: part_queue, semaphore, value: 1 });
                    }
                    steps.extend(access_mask_barrier(part_queue, phase.dependency));
                } else if number > 0 {
                    let stages = graphics_draw::stages_around(program, number);
                    join.append_steps(&queues, (phase.dependency, stages), &mut semaphores, &mut steps);
                }
                for (turn, own) in parts.into_iter().enumerate() {
                    if turn > 0 {
                        // Unordered dispatches get separate command buffers: a tool that searches for missing
                        // barriers searches within one.
                        steps.push(PlanStep::CommandBuffer { queue: own.0.queue() });
                    }
                    put(&mut steps, own);
                }
                let after = program.hosts.as_ref().and_then(|hosts| hosts.dependencies_after.get(number));
                steps.extend(after.and_then(|after| access_mask_barrier(part_queue, *after)));
            }
        }
        if hosts.is_some() {
            steps.push(PlanStep::HostsEnd { queue: QUEUE });
        } else if several {
            steps.push(PlanStep::HostWait { queue: QUEUE });
            steps.extend(
                owned
                    .zip(users)
                    .into_iter()
                    .flat_map(|(buffer, (_, last))| transfer_ownership(program, buffer, last, QUEUE)),
            );
        }
        // Host and classifier read buffers, so images are copied to them.
        for (image, to) in texels {
            steps.extend([barrier.clone(), PlanStep::FromImage { queue: QUEUE, from: image, to }]);
            if classifier.is_none() {
                steps.push(to_host(to));
            }
        }
        if let Some(classifier) = classifier {
            steps.push(barrier.clone());
            helpers.push(steps.len());
            steps.push(helper(&classifier.count, kernels.len(), classifier.workgroups));
            kernels.push(helper_kernel(&classifier.count));
        }
        match sharing {
            MemorySharing::Direct => {
                steps.extend([to_host(RESULTS), to_host(LOCATIONS)]);
                steps.extend(claims.buffers().iter().copied().map(to_host));
            }
            MemorySharing::Copied => {
                steps.extend([barrier, copy(RESULTS, RESULTS_BACK)]);
                if let (Some(from), Some(to)) = (separate_locations, separate_readback) {
                    steps.extend([copy(from, to), to_host(to)]);
                }
                if with_locations {
                    steps.extend([copy(LOCATIONS, LOCATIONS_BACK), to_host(LOCATIONS_BACK)]);
                }
                steps.push(to_host(RESULTS_BACK));
            }
            MemorySharing::Counted => {
                steps.extend([barrier, copy(COUNTERS, COUNTERS_BACK), to_host(COUNTERS_BACK)]);
            }
        }
        if sharing != MemorySharing::Direct {
            steps.extend(rendezvous.iter().zip(&receipts).map(|(from, to)| copy(*from, *to)));
        }
        steps.extend(receipts.iter().copied().map(to_host));
        let mut plan = Plan {
            kernels,
            buffers,
            images: images.images,
            queues: program.queues.iter().map(|family| Queue { family: *family }).collect(),
            semaphores,
            hosts,
            steps,
        };
        let mut checks = Vec::new();
        if verified {
            let (on_host, locations_on_host) = match sharing {
                MemorySharing::Copied => (RESULTS_BACK, LOCATIONS_BACK),
                MemorySharing::Direct | MemorySharing::Counted => (RESULTS, LOCATIONS),
            };
            let instances = bounds.result_words / u64::from(bounds.slots.max(1));
            // A device that counts has reset its memory itself.
            let mut initialized = Vec::new();
            if sharing != MemorySharing::Counted {
                for (storage, value) in (0..).zip(&program.initial_values) {
                    let is_separate = program.separate_storages().contains(&storage);
                    let on_device = separate_locations.filter(|_| is_separate).unwrap_or(LOCATIONS);
                    initialized.push((on_device, storage, *value));
                }
            }
            // Kernels access a storage in an image only there.
            for contents in &image_contents {
                let value = |storage: u32| program.initial_values.get(storage as usize).copied();
                let storages = program.image_storages().into_iter();
                initialized
                    .extend(storages.map(|storage| (*contents, storage, value(storage).unwrap_or_default())));
            }
            let words = 0..bounds.storage_words;
            let initialized: Vec<(ReadBuffer, CheckedWords)> = initialized
                .into_iter()
                .flat_map(|(on_device, storage, value)| {
                    words.clone().map(move |word| {
                        let expected = ExpectedWords::Constant(value_word(value, word as usize));
                        let words = CheckedWords::Location(LocationWord { storage, word });
                        (ReadBuffer { on_device, expected, max_words: instances }, words)
                    })
                })
                .collect();
            let results = ReadBuffer {
                on_device: RESULTS,
                expected: ExpectedWords::OnHost(on_host),
                max_words: bounds.result_words,
            };
            let location = |own: &LocationWord| {
                let elsewhere = final_buffers.iter().find(|copy| copy.storages.contains(&own.storage));
                let (on_device, on_host) = match elsewhere {
                    Some(copy) if separate_readback == Some(copy.buffer) => {
                        (separate_locations.unwrap_or(copy.buffer), copy.buffer)
                    }
                    // Texels, which are copied once for device and host.
                    Some(copy) => (copy.buffer, copy.buffer),
                    None => (LOCATIONS, locations_on_host),
                };
                let expected = ExpectedWords::OnHost(on_host);
                (ReadBuffer { on_device, expected, max_words: instances }, CheckedWords::Location(*own))
            };
            let read: Vec<(ReadBuffer, CheckedWords)> = match classifier {
                Some(classifier) => {
                    let most = classifier.buffer_words();
                    let expected = ExpectedWords::OnHost(COUNTERS_BACK);
                    let counters = ReadBuffer { on_device: COUNTERS, expected, max_words: most };
                    vec![(counters, CheckedWords::Counters(most))]
                }
                None => std::iter::once((results, CheckedWords::Results))
                    .chain(location_words.iter().map(location))
                    .collect(),
            };
            let (buffers, words): (Vec<_>, Vec<_>) = initialized.into_iter().unzip();
            let length = plan.steps.len();
            let check = ReadbackCheck::insert_into_plan(&mut plan, QUEUE, &buffers, initialized_at);
            checks.extend(check.map(|check| (check, words)));
            let inserted = plan.steps.len() - length;
            let later = dispatches.iter_mut().map(|dispatch| &mut dispatch.step).chain(&mut helpers);
            later.filter(|step| **step >= initialized_at).for_each(|step| *step += inserted);
            let guards = guards.iter().map(|(word, value)| {
                let is_separate = program.separate_storages().contains(&word.storage);
                let on_device = separate_locations.filter(|_| is_separate).unwrap_or(LOCATIONS);
                let expected = ExpectedWords::Constant(*value);
                (ReadBuffer { on_device, expected, max_words: instances }, CheckedWords::Location(*word))
            });
            let (buffers, words): (Vec<_>, Vec<_>) = read.into_iter().chain(guards).unzip();
            let end = plan.steps.len();
            let check = ReadbackCheck::insert_into_plan(&mut plan, QUEUE, &buffers, end);
            checks.extend(check.map(|check| (check, words)));
        }
        let mark = CompletionMarker::add_to_plan(&mut plan, QUEUE);
        ProgramPlan {
            plan,
            marker: mark,
            final_buffers,
            separate_locations,
            claims,
            dispatches,
            queue_stress_step: None,
            helpers,
            rendezvous,
            receipts,
            receipt_positions: ReceiptPosition::for_program(program, bounds),
            overflow_words: program.phases.iter().map(|phase| phase.overflow_word() as usize).collect(),
            sharing,
            location_words: location_words.to_vec(),
            checks,
            salts: MemorySalts::new(numbered),
            lanes: bounds.lanes,
            initial_buffers: sources,
            initial: InitialValues {
                values: program.initial_values.clone(),
                storage_words: bounds.storage_words as usize,
            },
        }
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
        let scratch = BufferId(self.plan.buffers.len() as u32);
        self.plan.buffers.push(Buffer {
            words: scratch_words,
            memory: BufferMemory::Device,
            name: "scratch of the other queue",
        });
        let number = KernelId(self.plan.kernels.len() as u32);
        self.plan.kernels.push(plan::Kernel {
            words: kernel.words.clone(),
            bindings: 1,
            images: Vec::new(),
            push_constant_bytes: StressParameters::BYTES,
            addresses: Vec::new(),
            subgroups: plan::Subgroups::Any,
            stage: plan::KernelStage::Compute,
            interface: None,
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
            source.reset(prepared, (&self.initial, &self.salts), parameters, instances)?;
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

/// Returns the buffer of a kernel's binding.
fn buffer_of(
    binding: Binding,
    (rendezvous, claims): (BufferId, Option<BufferId>),
    separate_locations: Option<BufferId>,
    scratch: BufferId,
) -> BufferId {
    match binding {
        Binding::Locations => LOCATIONS,
        Binding::SeparateLocations => separate_locations.unwrap_or(LOCATIONS),
        Binding::Results => RESULTS,
        Binding::Rendezvous => rendezvous,
        Binding::Scratch => scratch,
        Binding::Claims => claims.unwrap_or(RESULTS),
    }
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
        images: Vec::new(),
        push_constant_bytes: classify::PUSH_CONSTANT_BYTES,
        addresses: Vec::new(),
        subgroups: plan::Subgroups::Any,
        stage: plan::KernelStage::Compute,
        interface: None,
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

/// The images of a program: one for each kind that its kernels bind.
struct ProgramImages {
    bindings: Vec<ImageBinding>,
    images: Vec<Image>,
}

impl ProgramImages {
    /// Creates the images with this many texels. Separate ones use the second memory and the second location
    /// buffer.
    fn for_program(
        program: &Program,
        words: u64,
        memory: (BufferMemory, BufferMemory),
        separate_locations: Option<BufferId>,
    ) -> ProgramImages {
        let mut bindings: Vec<ImageBinding> = Vec::new();
        for binding in program.kernels().flat_map(|kernel| &kernel.images) {
            if !bindings.contains(binding) {
                bindings.push(*binding);
            }
        }
        let words = u32::try_from(words).unwrap_or(u32::MAX);
        let images: Vec<Image> = bindings
            .iter()
            .map(|binding| Image {
                shape: match binding.shape {
                    Shape::TwoDimensional => {
                        ImageShape::TwoDimensional { width: IMAGE_WIDTH, height: words / IMAGE_WIDTH }
                    }
                    Shape::OneDimensional => ImageShape::OneDimensional { width: words },
                    Shape::TexelBuffer => ImageShape::Texels(
                        separate_locations.filter(|_| binding.is_separate).unwrap_or(LOCATIONS),
                    ),
                },
                format: if binding.is_float { ImageFormat::Float } else { ImageFormat::Unsigned },
                memory: if binding.is_separate { memory.1 } else { memory.0 },
                name: "location texels",
            })
            .collect();
        ProgramImages { bindings, images }
    }

    fn image_id(&self, binding: ImageBinding) -> Option<ImageId> {
        self.bindings.iter().position(|known| *known == binding).map(|number| ImageId(number as u32))
    }

    /// Returns the images with final values and their storages: at most one separate image and one other.
    fn final_value_images(&self, program: &Program) -> Vec<(ImageId, ImageBinding, Vec<u32>)> {
        let Some(float) = program.are_final_images_float() else { return Vec::new() };
        let of_kind = |apart: bool| {
            let storages: Vec<u32> = program
                .image_storages()
                .into_iter()
                .filter(|s| program.separate_storages().contains(s) == apart)
                .collect();
            let wanted = |binding: &&ImageBinding| binding.is_float == float && binding.is_separate == apart;
            let binding = self.bindings.iter().find(wanted)?;
            Some((self.image_id(*binding)?, *binding, storages))
        };
        [false, true].into_iter().filter_map(of_kind).collect()
    }

    /// Returns the images other than texel buffers.
    fn non_texel_images(&self) -> impl Iterator<Item = (ImageId, ImageBinding)> {
        let all = (0..).map(ImageId).zip(self.bindings.iter().copied());
        all.filter(|(_, binding)| binding.shape != Shape::TexelBuffer)
    }

    /// Adds the texel buffers that are views of the second location buffer to the numbered memories.
    fn add_salted_views(&self, numbered: &mut Vec<(SaltedMemory, u32)>) {
        let second = numbered
            .iter()
            .find(|(memory, _)| *memory == SaltedMemory::SeparateLocations)
            .map(|(_, own)| *own);
        let view = |binding: &&ImageBinding| binding.shape == Shape::TexelBuffer && binding.is_separate;
        let views = self.bindings.iter().filter(view).map(|binding| SaltedMemory::Image(*binding));
        numbered.extend(views.zip(std::iter::repeat(second.unwrap_or(0))));
    }
}

fn prefix_mut(words: &mut [u32], count: usize) -> &mut [u32] {
    let count = count.min(words.len());
    &mut words[..count]
}
