//! Builds a [`ProgramPlan`] in the order of its parts: buffers, initial values, dispatches, read-back, checks.

use std::collections::BTreeMap;

use plan::{
    Buffer, BufferId, BufferMemory, Hosts, ImageId, KernelId, Plan, PlanStep, Queue, QueueId, Semaphore,
    SemaphoreId,
};
use shaders::classify::{self, ClassifierKernel};
use shaders::draw::DrawModules;
use shaders::host::SubmissionStart;
use shaders::{Binding, DispatchPhase, Program, ProgramKernel, SaltedMemory};

use super::images::ProgramImages;
use super::{
    COUNTERS, COUNTERS_BACK, DispatchStep, FinalBuffer, INITIAL, LOCATIONS, LOCATIONS_BACK, MemorySharing,
    ProgramPlan, QUEUE, RESULTS, RESULTS_BACK, ReceiptPosition, access_mask_barrier, buffer_of_role,
    helper_kernel, to_plan_kernel, transfer_ownership,
};
use crate::calls::{self, OrderedCall, OrderedCalls};
use crate::classify::Classifier;
use crate::completion_marker::CompletionMarker;
use crate::dispatch::Workgroups;
use crate::graphics_draw::{self, ClaimBuffers, DrawMapping};
use crate::initial::{InitialBuffer, InitialValues, MemorySalts, value_word};
use crate::join::Join;
use crate::readback::{CheckedWords, ExpectedWords, LocationWord, ReadBuffer, ReadbackCheck};
use crate::sampling::KernelLimits;

/// The input of a plan.
pub(crate) struct PlanRequest<'a> {
    pub program: &'a Program,
    /// The host threads of the test.
    pub hosts: Option<Hosts>,
    pub join: Join,
    /// The memory of the locations.
    pub memory: BufferMemory,
    pub bounds: &'a KernelLimits,
    pub workgroups: Workgroups,
    pub sharing: MemorySharing,
    pub classifier: Option<&'a Classifier>,
    /// The words of the locations that are read back.
    pub location_words: &'a [LocationWord],
    /// Read-back is checked by checksums.
    pub verified: bool,
    /// Words whose final values are checked too.
    pub guards: &'a [(LocationWord, u32)],
    /// The contents of result memory before the kernels.
    pub poison: u32,
}

/// A dispatch or draw before its place among the steps is known.
type PendingDispatch = (PlanStep, DispatchStep);

/// A plan under construction. Its methods are called in the order in which they stand here.
pub(super) struct PlanBuilder<'a> {
    request: PlanRequest<'a>,
    /// The memory of buffers that only the device uses. A driver may write to mapped memory at any time.
    private: BufferMemory,
    plan: Plan,
    images: ProgramImages,
    final_buffers: Vec<FinalBuffer>,
    /// The second location buffer, and its copy for the host.
    separate_locations: Option<BufferId>,
    separate_readback: Option<BufferId>,
    separate_source: Option<BufferId>,
    initial_buffers: Vec<InitialBuffer>,
    /// Memory with separate salts, by their numbers.
    numbered: Vec<(SaltedMemory, u32)>,
    /// The images, each with the buffer of its initial values.
    filled_images: Vec<(ImageId, BufferId)>,
    /// The contents of each image before the kernels.
    image_contents: Vec<BufferId>,
    /// Images with final values, and their copies.
    texels: Vec<(ImageId, BufferId)>,
    rendezvous: Vec<BufferId>,
    scratch: BufferId,
    claims: ClaimBuffers,
    /// The claims of each kernel, in their order.
    claimed: std::vec::IntoIter<Option<BufferId>>,
    receipts: Vec<BufferId>,
    helpers: Vec<usize>,
    dispatches: Vec<DispatchStep>,
}

impl<'a> PlanBuilder<'a> {
    /// Starts a plan with the location, result and counter buffers, and the images.
    fn new(request: PlanRequest<'a>) -> PlanBuilder<'a> {
        let PlanRequest { program, bounds, sharing, .. } = request;
        let private = match sharing {
            MemorySharing::Direct => BufferMemory::Device,
            MemorySharing::Copied | MemorySharing::Counted => BufferMemory::Private,
        };
        let memory = if request.memory == BufferMemory::Device { private } else { request.memory };
        let words = bounds.location_words();
        // If a variant separates locations, only these have the requested memory; the others have device
        // memory.
        let is_separate = !program.separate_storages().is_empty();
        let location_memory = if is_separate && !program.has_separate_owned { private } else { memory };
        let mut buffers = vec![
            Buffer { words, memory: location_memory, name: "locations" },
            Buffer { words: bounds.result_buffer_words(), memory: private, name: "results" },
        ];
        let mut add = |words, memory, name| {
            buffers.push(Buffer { words, memory, name });
            BufferId(buffers.len() as u32 - 1)
        };
        if sharing == MemorySharing::Copied {
            add(words, BufferMemory::Shared, "initial values");
            add(bounds.result_buffer_words(), BufferMemory::Readback, "results for the host");
            if !request.location_words.is_empty() {
                add(words, BufferMemory::Readback, "locations for the host");
            }
        }
        if let Some(classifier) = request.classifier {
            add(classifier.buffer_words(), private, "counters");
            add(classifier.buffer_words(), BufferMemory::Readback, "counters for the host");
        }
        let separate_locations = is_separate.then(|| add(words, memory, "separate locations"));
        let mut images =
            ProgramImages::for_program(program, words, (location_memory, memory), separate_locations);
        // The location buffers of the host, which initialize the first image too.
        let initial_buffers = match sharing {
            MemorySharing::Direct => vec![InitialBuffer::new(LOCATIONS, 0, true)],
            MemorySharing::Copied => vec![InitialBuffer::new(INITIAL, 0, false)],
            MemorySharing::Counted => Vec::new(),
        };
        let plan = Plan {
            buffers,
            images: std::mem::take(&mut images.images),
            queues: program.queues.iter().map(|family| Queue { family: *family }).collect(),
            hosts: request.hosts.clone(),
            ..Plan::default()
        };
        PlanBuilder {
            private,
            plan,
            images,
            separate_locations,
            initial_buffers,
            claims: ClaimBuffers::new(bounds.claim_words, private),
            scratch: LOCATIONS,
            request,
            final_buffers: Vec::new(),
            separate_readback: None,
            separate_source: None,
            numbered: Vec::new(),
            filled_images: Vec::new(),
            image_contents: Vec::new(),
            texels: Vec::new(),
            rendezvous: Vec::new(),
            claimed: Vec::new().into_iter(),
            receipts: Vec::new(),
            helpers: Vec::new(),
            dispatches: Vec::new(),
        }
    }

    /// Adds a buffer with as many words as the locations have.
    fn add_location_sized(&mut self, memory: BufferMemory, name: &'static str) -> BufferId {
        self.add_buffer(self.request.bounds.location_words(), memory, name)
    }

    fn add_buffer(&mut self, words: u64, memory: BufferMemory, name: &'static str) -> BufferId {
        self.plan.add_buffer(words, memory, name)
    }

    /// Adds the copy of final values outside of the location buffer.
    fn add_final_buffer(&mut self, storages: Vec<u32>, copied: SaltedMemory, name: &'static str) -> BufferId {
        // A device that counts reads them itself.
        let memory = if self.request.classifier.is_some() { self.private } else { BufferMemory::Readback };
        let buffer = self.add_location_sized(memory, name);
        self.final_buffers.push(FinalBuffer { buffer, storages, copied });
        buffer
    }

    /// Adds a buffer of initial values for memory with separate salts.
    fn add_initial_buffer(&mut self, memory: SaltedMemory) -> BufferId {
        let number = self.numbered.len() as u32 + 1;
        let id = self.add_location_sized(BufferMemory::Shared, "more initial values");
        self.initial_buffers.push(InitialBuffer::new(id, number, false));
        self.numbered.push((memory, number));
        id
    }

    /// Adds the buffers around separate locations and images.
    fn add_separate_memory(&mut self) {
        let program = self.request.program;
        let reads_locations = !self.request.location_words.is_empty();
        if self.separate_locations.is_some() && reads_locations {
            let storages = program.separate_storages().to_vec();
            let name = "separate locations for the host";
            let back = self.add_final_buffer(storages, SaltedMemory::SeparateLocations, name);
            self.separate_readback = Some(back);
        }
        // The second location buffer and further images have other salts than the location buffer, so they get
        // their initial values from other buffers.
        if self.separate_locations.is_some() {
            self.separate_source = Some(self.add_initial_buffer(SaltedMemory::SeparateLocations));
        }
        let images: Vec<_> = self.images.non_texel_images().collect();
        for (image, binding) in images {
            let from = match self.filled_images.is_empty() {
                true => LOCATIONS,
                false => self.add_initial_buffer(SaltedMemory::Image(binding)),
            };
            self.filled_images.push((image, from));
        }
        if self.request.verified {
            for _ in 0..self.filled_images.len() {
                let contents = self.add_location_sized(self.private, "contents of an image");
                self.image_contents.push(contents);
            }
        }
        self.images.add_salted_views(&mut self.numbered);
        let with_values = self.images.final_value_images(program);
        for (image, binding, storages) in with_values.into_iter().filter(|_| reads_locations) {
            let copied = SaltedMemory::Image(binding);
            let back = self.add_final_buffer(storages, copied, "texels for the host");
            self.texels.push((image, back));
        }
    }

    /// Adds the buffers of rendezvous, stress, claims and receipts.
    fn add_kernel_memory(&mut self) {
        let PlanRequest { program, bounds, sharing, .. } = self.request;
        for _ in &program.phases {
            let rendezvous = self.add_buffer(bounds.rendezvous_words, self.private, "rendezvous");
            self.rendezvous.push(rendezvous);
        }
        if bounds.scratch_words > 0 {
            self.scratch = self.add_buffer(bounds.scratch_words, self.private, "scratch");
        }
        let claimed: Vec<Option<BufferId>> =
            program.kernels().map(|kernel| self.claims.add(kernel, &mut self.plan.buffers)).collect();
        self.claimed = claimed.into_iter();
        self.receipts = match sharing {
            MemorySharing::Direct => self.rendezvous.clone(),
            MemorySharing::Copied | MemorySharing::Counted => {
                let words = bounds.rendezvous_words;
                let mut back = || self.add_buffer(words, BufferMemory::Readback, "receipts for the host");
                program.phases.iter().map(|_| back()).collect()
            }
        };
    }

    /// Adds a dispatch of a kernel that resets memory or counts.
    fn add_helper(&mut self, helper: &ClassifierKernel, workgroups: u32) {
        let texels = self.texels.first().map_or(LOCATIONS, |(_, buffer)| *buffer);
        self.helpers.push(self.plan.steps.len());
        self.plan.steps.push(PlanStep::Dispatch {
            queue: QUEUE,
            kernel: KernelId(self.plan.kernels.len() as u32),
            workgroups,
            bindings: helper.bindings.iter().map(|shown| buffer_of_role(*shown, texels)).collect(),
            push_constants: vec![0; classify::PUSH_CONSTANT_BYTES as usize],
        });
        self.plan.kernels.push(helper_kernel(helper));
    }

    /// Adds the steps that initialize memory.
    fn initialize(&mut self) {
        let poison = self.request.poison;
        let poisoned = |buffer| PlanStep::Fill { queue: QUEUE, buffer, value: poison };
        let zeroed = |buffer: &BufferId| PlanStep::Fill { queue: QUEUE, buffer: *buffer, value: 0 };
        let cleared = self.rendezvous.iter().chain(self.claims.buffers()).map(zeroed);
        if self.request.sharing == MemorySharing::Copied {
            let steps = &mut self.plan.steps;
            steps.push(poisoned(RESULTS));
            steps.extend(cleared);
            // An incomplete copy then leaves poison, not values of an earlier dispatch.
            steps.extend(std::iter::once(LOCATIONS).chain(self.separate_locations).map(poisoned));
            steps.extend([BARRIER, copy_step(INITIAL, LOCATIONS)]);
            let separate = self.separate_source.zip(self.separate_locations);
            steps.extend(separate.map(|(from, to)| copy_step(from, to)));
            steps.push(BARRIER);
        } else if let Some(classifier) = self.request.classifier {
            let steps = &mut self.plan.steps;
            steps.extend(cleared.chain([zeroed(&COUNTERS)]));
            // Texels that are not copied then have no values of an earlier dispatch.
            steps.extend(self.texels.iter().map(|(_, buffer)| poisoned(*buffer)));
            steps.push(BARRIER);
            self.add_helper(&classifier.reset, classifier.workgroups);
            self.plan.steps.push(BARRIER);
        }
        let steps = &mut self.plan.steps;
        if !self.filled_images.is_empty() {
            let filled = self.filled_images.iter();
            steps.extend(filled.map(|(to, from)| PlanStep::ToImage { queue: QUEUE, from: *from, to: *to }));
            steps.extend(self.image_contents.iter().copied().map(poisoned));
            steps.push(BARRIER);
        }
        if !self.image_contents.is_empty() {
            let images = self.filled_images.iter().zip(&self.image_contents);
            let read =
                images.map(|((from, _), to)| PlanStep::FromImage { queue: QUEUE, from: *from, to: *to });
            steps.extend(read);
            steps.push(BARRIER);
        }
    }

    /// Adds the kernels and their dispatches, in the order of the test's calls or joined phase by phase.
    fn run_kernels(&mut self) {
        let PlanRequest { program, join, .. } = self.request;
        // Queue 0 initializes and reads back memory; the host synchronizes it with the other queues.
        let has_hosts = self.request.hosts.is_some();
        let several = program.queues.len() > 1 && !has_hosts;
        // With the calls of the test, its schedule orders the steps.
        let ordered = program.schedule.as_ref().filter(|_| join == Join::Calls).and_then(|schedule| {
            let written = self.separate_locations.unwrap_or(LOCATIONS);
            calls::order_calls(program, schedule, written).ok()
        });
        // The queues that use the owned memory first and last.
        let owned = self.separate_locations.filter(|_| program.has_separate_owned && several);
        let users =
            owned.zip(ordered.as_ref()).and_then(|(_, ordered)| calls::owned_memory_users(ordered, program));
        let transferred = owned.zip(users);
        if has_hosts {
            self.plan.steps.push(PlanStep::Hosts { queue: QUEUE });
        } else if several {
            let to_first =
                transferred.map(|(buffer, (first, _))| transfer_ownership(program, buffer, QUEUE, first));
            self.plan.steps.extend(to_first.into_iter().flatten());
            self.plan.steps.push(PlanStep::HostWait { queue: QUEUE });
        }
        let mut pending = Vec::with_capacity(program.phases.len());
        for (number, phase) in program.phases.iter().enumerate() {
            pending.push(self.add_kernels(number, phase));
        }
        match ordered {
            Some(ordered) => self.order_by_calls(ordered, pending),
            None => self.order_by_phases(pending),
        }
        if has_hosts {
            self.plan.steps.push(PlanStep::HostsEnd { queue: QUEUE });
        } else if several {
            self.plan.steps.push(PlanStep::HostWait { queue: QUEUE });
            let from_last =
                transferred.map(|(buffer, (_, last))| transfer_ownership(program, buffer, last, QUEUE));
            self.plan.steps.extend(from_last.into_iter().flatten());
        }
    }

    /// Adds the kernels of a phase. Returns their dispatches and draws, in the order of the kernels.
    fn add_kernels(&mut self, number: usize, phase: &DispatchPhase) -> Vec<PendingDispatch> {
        let workgroups = self.request.workgroups;
        let mut pending = Vec::with_capacity(phase.kernels.len());
        for (part, vertices) in graphics_draw::group_launches(&phase.kernels) {
            let classes = part.kernel.workgroups_per_group();
            let draw_mapping = DrawMapping::for_kernel(&part.kernel);
            let claims = self.claimed.next().flatten();
            let bindings =
                part.kernel.bindings.iter().map(|binding| self.buffer_of(number, *binding, claims)).collect();
            let own = to_plan_kernel(&part.kernel, &self.images, self.separate_locations);
            let (own, bindings, draw_mapping) = match (vertices, draw_mapping) {
                (Some(vertices), Some(drawn)) => {
                    let (own, bindings) = self.combine_draw(number, own, part, vertices, claims);
                    (own, bindings, Some(drawn.with_vertices(&vertices.kernel)))
                }
                _ => (own, bindings, draw_mapping),
            };
            let (queue, kernel) = (QueueId(part.queue), KernelId(self.plan.kernels.len() as u32));
            self.plan.kernels.push(own);
            let push_constants = vec![0; part.kernel.push_constant_bytes() as usize];
            let step = match draw_mapping {
                None => {
                    let workgroups = workgroups.for_classes(classes);
                    PlanStep::Dispatch { queue, kernel, workgroups, bindings, push_constants }
                }
                Some(drawn) => {
                    let drawing = drawn.to_drawing(classes, workgroups);
                    PlanStep::Draw { queue, kernel, drawing, bindings, push_constants }
                }
            };
            let is_stressed = part.kernel.is_stressed();
            pending.push((step, DispatchStep { step: 0, phase: number, classes, is_stressed, draw_mapping }));
        }
        pending
    }

    /// Returns kernel and bindings of a draw whose fragments and vertices both run threads. Each keeps its own
    /// claims.
    fn combine_draw(
        &mut self,
        phase: usize,
        fragments: plan::Kernel,
        part: &ProgramKernel,
        vertices: &ProgramKernel,
        fragment_claims: Option<BufferId>,
    ) -> (plan::Kernel, Vec<BufferId>) {
        let modules = DrawModules::combine(&vertices.kernel, &part.kernel);
        let vertex_claims = self.claimed.next().flatten();
        let claims = |of_vertex: bool| if of_vertex { vertex_claims } else { fragment_claims };
        let bindings =
            modules.bindings.iter().map(|(own, of)| self.buffer_of(phase, *own, claims(*of))).collect();
        // Addresses have one position in the push constants, whichever kernel uses them.
        let of_vertices = to_plan_kernel(&vertices.kernel, &self.images, self.separate_locations);
        let addresses = match of_vertices.addresses.len() >= fragments.addresses.len() {
            true => of_vertices.addresses,
            false => fragments.addresses.clone(),
        };
        let images = modules.images.iter().filter_map(|binding| self.images.image_id(*binding)).collect();
        (plan::Kernel { images, addresses, ..graphics_draw::combined_kernel(fragments, &modules) }, bindings)
    }

    fn buffer_of(&self, phase: usize, binding: Binding, claims: Option<BufferId>) -> BufferId {
        match binding {
            Binding::Locations => LOCATIONS,
            Binding::SeparateLocations => self.separate_locations.unwrap_or(LOCATIONS),
            Binding::Results => RESULTS,
            Binding::Rendezvous => self.rendezvous.get(phase).copied().unwrap_or(RESULTS),
            Binding::Scratch => self.scratch,
            Binding::Claims => claims.unwrap_or(RESULTS),
        }
    }

    fn add_dispatch(&mut self, (step, dispatch): PendingDispatch) {
        self.dispatches.push(DispatchStep { step: self.plan.steps.len(), ..dispatch });
        self.plan.steps.push(step);
    }

    /// Adds the dispatches between the calls of the test.
    fn order_by_calls(&mut self, ordered: OrderedCalls, pending: Vec<Vec<PendingDispatch>>) {
        let parts = self.request.program.phases.iter().flat_map(|phase| &phase.kernels);
        let mut parts: Vec<_> = parts.zip(pending.into_iter().flatten().map(Some)).collect();
        self.plan.semaphores = ordered.semaphores;
        // The phase of the last dispatch of each queue.
        let mut last: BTreeMap<QueueId, usize> = BTreeMap::new();
        for item in ordered.items {
            match item {
                OrderedCall::Call(step) => self.plan.steps.push(step),
                OrderedCall::Dispatch(thread) => {
                    let part = parts.iter_mut().find(|(part, _)| part.threads.contains(&thread));
                    if let Some(own) = part.and_then(|(_, own)| own.take()) {
                        // Unordered dispatches get separate command buffers, as in `order_by_phases`.
                        let (queue, phase) = (own.0.queue(), own.1.phase);
                        if last.insert(queue, phase) == Some(phase) {
                            self.plan.steps.push(PlanStep::CommandBuffer { queue });
                        }
                        self.add_dispatch(own);
                    }
                }
            }
        }
    }

    /// Adds the dispatches phase by phase, with the steps between them.
    fn order_by_phases(&mut self, pending: Vec<Vec<PendingDispatch>>) {
        let PlanRequest { program, join, .. } = self.request;
        let queues: Vec<QueueId> = (0..program.queues.len() as u32).map(QueueId).collect();
        let hosts = program.hosts.as_ref();
        for (number, (phase, parts)) in program.phases.iter().zip(pending).enumerate() {
            let queue = phase.kernels.first().map_or(QUEUE, |part| QueueId(part.queue));
            let Plan { steps, semaphores, .. } = &mut self.plan;
            if self.request.hosts.is_some() {
                steps.push(PlanStep::Batch { queue, number: number as u32 });
                let start = hosts.and_then(|hosts| hosts.submission_starts.get(number));
                // Its submission waits for a semaphore that a host thread signals.
                if start == Some(&SubmissionStart::Held) {
                    let semaphore = SemaphoreId(semaphores.len() as u32);
                    semaphores.push(Semaphore::Timeline);
                    steps.push(PlanStep::Wait { queue, semaphore, value: 1 });
                }
                steps.extend(access_mask_barrier(queue, phase.dependency));
            } else if number > 0 {
                let stages = graphics_draw::stages_around(program, number);
                join.append_steps(&queues, phase.dependency, stages, semaphores, steps);
            }
            for (turn, own) in parts.into_iter().enumerate() {
                if turn > 0 {
                    // Unordered dispatches get separate command buffers: a tool that searches for missing
                    // barriers searches within one.
                    self.plan.steps.push(PlanStep::CommandBuffer { queue: own.0.queue() });
                }
                self.add_dispatch(own);
            }
            let after = hosts.and_then(|hosts| hosts.dependencies_after.get(number));
            self.plan.steps.extend(after.and_then(|after| access_mask_barrier(queue, *after)));
        }
    }

    /// Adds the steps that count on the device or copy for the host.
    fn read_back(&mut self) {
        let classifier = self.request.classifier;
        // Host and classifier read buffers, so images are copied to them.
        for (image, to) in &self.texels {
            self.plan.steps.extend([BARRIER, PlanStep::FromImage { queue: QUEUE, from: *image, to: *to }]);
            if classifier.is_none() {
                self.plan.steps.push(to_host(*to));
            }
        }
        if let Some(classifier) = classifier {
            self.plan.steps.push(BARRIER);
            self.add_helper(&classifier.count, classifier.workgroups);
        }
        let steps = &mut self.plan.steps;
        match self.request.sharing {
            MemorySharing::Direct => {
                steps.extend([to_host(RESULTS), to_host(LOCATIONS)]);
                steps.extend(self.claims.buffers().iter().copied().map(to_host));
            }
            MemorySharing::Copied => {
                steps.extend([BARRIER, copy_step(RESULTS, RESULTS_BACK)]);
                if let (Some(from), Some(to)) = (self.separate_locations, self.separate_readback) {
                    steps.extend([copy_step(from, to), to_host(to)]);
                }
                if !self.request.location_words.is_empty() {
                    steps.extend([copy_step(LOCATIONS, LOCATIONS_BACK), to_host(LOCATIONS_BACK)]);
                }
                steps.push(to_host(RESULTS_BACK));
            }
            MemorySharing::Counted => {
                steps.extend([BARRIER, copy_step(COUNTERS, COUNTERS_BACK), to_host(COUNTERS_BACK)]);
            }
        }
        if self.request.sharing != MemorySharing::Direct {
            steps.extend(self.rendezvous.iter().zip(&self.receipts).map(|(from, to)| copy_step(*from, *to)));
        }
        steps.extend(self.receipts.iter().copied().map(to_host));
    }

    /// Returns the location buffer of a storage on the device.
    fn location_buffer(&self, storage: u32) -> BufferId {
        let is_separate = self.request.program.separate_storages().contains(&storage);
        self.separate_locations.filter(|_| is_separate).unwrap_or(LOCATIONS)
    }

    /// Returns the initial values that are checked, each with its range.
    fn initialized_words(&self, max_words: u64) -> Vec<(ReadBuffer, CheckedWords)> {
        let PlanRequest { program, bounds, sharing, .. } = self.request;
        let mut initialized = Vec::new();
        // A device that counts has reset its memory itself.
        if sharing != MemorySharing::Counted {
            let values = (0..).zip(&program.initial_values);
            initialized
                .extend(values.map(|(storage, value)| (self.location_buffer(storage), storage, *value)));
        }
        // Kernels access a storage in an image only there.
        for contents in &self.image_contents {
            let value = |storage: u32| program.initial_values.get(storage as usize).copied();
            let storages = program.image_storages().into_iter();
            initialized
                .extend(storages.map(|storage| (*contents, storage, value(storage).unwrap_or_default())));
        }
        let of_words = |(on_device, storage, value)| {
            (0..bounds.storage_words).map(move |word| {
                let expected = ExpectedWords::Constant(value_word(value, word as usize));
                let words = CheckedWords::Location(LocationWord { storage, word });
                (ReadBuffer { on_device, expected, max_words }, words)
            })
        };
        initialized.into_iter().flat_map(of_words).collect()
    }

    /// Returns the words that the host reads, each with its range on the device.
    fn read_words(&self, max_words: u64) -> Vec<(ReadBuffer, CheckedWords)> {
        let PlanRequest { bounds, sharing, location_words, .. } = self.request;
        if let Some(classifier) = self.request.classifier {
            let all = classifier.buffer_words();
            let expected = ExpectedWords::OnHost(COUNTERS_BACK);
            let counters = ReadBuffer { on_device: COUNTERS, expected, max_words: all };
            return vec![(counters, CheckedWords::Counters(all))];
        }
        let (results, locations) = match sharing {
            MemorySharing::Copied => (RESULTS_BACK, LOCATIONS_BACK),
            MemorySharing::Direct | MemorySharing::Counted => (RESULTS, LOCATIONS),
        };
        let results = ReadBuffer {
            on_device: RESULTS,
            expected: ExpectedWords::OnHost(results),
            max_words: bounds.result_words,
        };
        let location = |own: &LocationWord| {
            let elsewhere = self.final_buffers.iter().find(|copy| copy.storages.contains(&own.storage));
            let (on_device, on_host) = match elsewhere {
                Some(copy) if self.separate_readback == Some(copy.buffer) => {
                    (self.separate_locations.unwrap_or(copy.buffer), copy.buffer)
                }
                // Texels, which are copied once for device and host.
                Some(copy) => (copy.buffer, copy.buffer),
                None => (LOCATIONS, locations),
            };
            let expected = ExpectedWords::OnHost(on_host);
            (ReadBuffer { on_device, expected, max_words }, CheckedWords::Location(*own))
        };
        let results = std::iter::once((results, CheckedWords::Results));
        results.chain(location_words.iter().map(location)).collect()
    }

    /// Adds checksums of the initial values at step `initialized`, and of all that the host reads at the end.
    fn add_checks(&mut self, initialized: usize) -> Vec<(ReadbackCheck, Vec<CheckedWords>)> {
        if !self.request.verified {
            return Vec::new();
        }
        let bounds = self.request.bounds;
        let instances = bounds.result_words / u64::from(bounds.slots.max(1));
        let (buffers, words): (Vec<_>, Vec<_>) = self.initialized_words(instances).into_iter().unzip();
        let length = self.plan.steps.len();
        let check = ReadbackCheck::insert_into_plan(&mut self.plan, QUEUE, &buffers, initialized);
        let mut checks: Vec<_> = check.map(|check| (check, words)).into_iter().collect();
        let inserted = self.plan.steps.len() - length;
        let later = self.dispatches.iter_mut().map(|dispatch| &mut dispatch.step).chain(&mut self.helpers);
        later.filter(|step| **step >= initialized).for_each(|step| *step += inserted);
        let guards = self.request.guards.iter().map(|(word, value)| {
            let (on_device, expected) = (self.location_buffer(word.storage), ExpectedWords::Constant(*value));
            (ReadBuffer { on_device, expected, max_words: instances }, CheckedWords::Location(*word))
        });
        let (buffers, words): (Vec<_>, Vec<_>) = self.read_words(instances).into_iter().chain(guards).unzip();
        let end = self.plan.steps.len();
        let check = ReadbackCheck::insert_into_plan(&mut self.plan, QUEUE, &buffers, end);
        checks.extend(check.map(|check| (check, words)));
        checks
    }

    /// Builds the plan.
    pub fn build(request: PlanRequest<'a>) -> ProgramPlan {
        let mut builder = PlanBuilder::new(request);
        builder.add_separate_memory();
        builder.add_kernel_memory();
        builder.initialize();
        let initialized = builder.plan.steps.len();
        builder.run_kernels();
        builder.read_back();
        let checks = builder.add_checks(initialized);
        let marker = CompletionMarker::add_to_plan(&mut builder.plan, QUEUE);
        let PlanRequest { program, bounds, sharing, location_words, .. } = builder.request;
        ProgramPlan {
            plan: builder.plan,
            marker,
            final_buffers: builder.final_buffers,
            separate_locations: builder.separate_locations,
            claims: builder.claims,
            dispatches: builder.dispatches,
            queue_stress_step: None,
            helpers: builder.helpers,
            rendezvous: builder.rendezvous,
            receipts: builder.receipts,
            receipt_positions: ReceiptPosition::for_program(program, bounds),
            overflow_words: program.phases.iter().map(|phase| phase.overflow_word() as usize).collect(),
            sharing,
            location_words: location_words.to_vec(),
            checks,
            salts: MemorySalts::new(builder.numbered),
            lanes: bounds.lanes,
            initial_buffers: builder.initial_buffers,
            initial: InitialValues {
                values: program.initial_values.clone(),
                storage_words: bounds.storage_words as usize,
            },
        }
    }
}

/// Orders all earlier steps of the queue before all later ones.
const BARRIER: PlanStep = PlanStep::Barrier { queue: QUEUE };

fn to_host(buffer: BufferId) -> PlanStep {
    PlanStep::ToHost { queue: QUEUE, buffer }
}

fn copy_step(from: BufferId, to: BufferId) -> PlanStep {
    PlanStep::Copy { queue: QUEUE, from, to }
}
