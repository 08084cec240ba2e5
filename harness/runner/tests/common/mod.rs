//! A device that executes no SPIR-V. It implements the contract between kernel and runner in Rust, or follows
//! a script.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test support: a failure is the report")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use litmus::*;
use plan::{
    BufferId, BufferMemory, Capabilities, Device, DeviceError, Identity, Plan, PlanStep, Prepared, Progress,
};
use shaders::{
    Binding, CompiledKernel, Parameters, Requirements, ResultSlot, Roles, SaltedMemory, SaltedPath,
    StressParameters,
};

/// `P0: x = 1; r0 = y` and `P1: y = 1; r0 = x`, each in its own workgroup. The outcome is `P0:r0, P1:r0, y`.
pub fn store_buffering() -> Test {
    let span = Span::default();
    let access = Access::Atomic { scope: Scope::Device, semantics: Semantics::RELAXED };
    let place = |location| MemoryPlace::whole_location(LocationId(location), StorageClass::Buffer);
    let thread = |number: u32, write: u16, read: u16| Thread {
        number,
        place: ThreadPlace::Device(Placement { queue_family: 0, queue: 0, workgroup: number, subgroup: 0 }),
        registers: vec![Register { name: "r0".into(), init: RegisterInit::Constant(0), declared: false }],
        labels: Vec::new(),
        instructions: vec![
            Instruction { kind: InstructionKind::store(place(write), Operand::Constant(1), access), span },
            Instruction { kind: InstructionKind::load(RegisterId(0), place(read), access), span },
        ],
        span,
    };
    Test {
        locations: vec![Location::new("x"), Location::new("y")],
        threads: vec![thread(0, 0, 1), thread(1, 1, 0)],
        listed_terms: vec![Term::Location(LocationId(1), 0)],
        ..Test::new("SB+rlx-rlx", Dialect::Vulkan)
    }
}

/// Returns a kernel for [`store_buffering`] with placeholder words.
pub fn kernel() -> CompiledKernel {
    let register = |thread| Observable::Register(ThreadId(thread), RegisterId(0));
    CompiledKernel {
        words: vec![0x0723_0203, 0x0001_0500, 0, 1, 0, 0x0001_0000],
        workgroup_size: 4,
        identity: 0,
        measured_bindings: Vec::new(),
        salted_paths: vec![SaltedPath { memory: SaltedMemory::Locations, offset: 0, bytes: 4 }; 2],
        lanes: 4,
        bindings: vec![Binding::Locations, Binding::Locations, Binding::Results, Binding::Rendezvous],
        carrier: shaders::carrier::Carrier::Compute,
        roles: Roles { classes: vec![vec![ThreadId(0)], vec![ThreadId(1)]] },
        images: Vec::new(),
        uses_addresses: false,
        separate_storages: Vec::new(),
        variant: shaders::Variant::default(),
        storage_words: 1,
        image_storages: Vec::new(),
        max_loop_iterations: 0,
        thread_loops: 0,
        is_parallel: false,
        first_class: 0,
        first_slot: 0,
        storages: 2,
        initial_values: vec![0, 0],
        results: vec![
            ResultSlot::Register(register(0)),
            ResultSlot::Register(register(1)),
            ResultSlot::Done(ThreadId(1)),
        ],
        final_values: vec![(Observable::Location(LocationId(1), 0), 1)],
        requirements: Requirements::default(),
    }
}

/// The memory of a dispatch, by the bindings of [`kernel`].
pub struct Memories<'a> {
    pub parameters: Parameters,
    pub workgroups: u32,
    pub locations: &'a mut [u32],
    pub results: &'a mut [u32],
    pub rendezvous: &'a mut [u32],
}

/// Executes a role of [`kernel`] on the memory of one instance.
pub fn execute_role(memories: &mut Memories<'_>, role: u32, instance: u32) {
    let p = memories.parameters;
    let total = p.rounds * p.groups * 4;
    let x = (instance * p.stride) as usize;
    let y = (instance * p.stride + p.spacing) as usize;
    let slot = |number: u32| (number * total + instance) as usize;
    let (write, read) = if role == 0 { (x, y) } else { (y, x) };
    memories.locations[write] += 1;
    memories.results[slot(role)] = memories.locations[read];
    if role == 1 {
        memories.results[slot(2)] = p.done;
    }
}

/// Visits every role of every instance in the order of the contract, one workgroup after another.
pub fn for_each_role(parameters: &Parameters, workgroups: u32, mut visit: impl FnMut(u32, u32)) {
    let p = *parameters;
    let (classes, lanes) = (2, 4);
    assert_eq!(workgroups, classes * p.groups, "the dispatch has the workgroups of its groups");
    assert_eq!(p.groups % p.pairing, 0, "pairing divides the groups");
    for workgroup in 0..workgroups {
        let class = (workgroup / p.pairing) % classes;
        let group = (workgroup / (p.pairing * classes)) * p.pairing + workgroup % p.pairing;
        for round in 0..p.rounds {
            for lane in 0..lanes {
                let i = ((group * p.group_multiplier + class * p.group_offset) % p.groups) * lanes
                    + (lane * p.lane_multiplier + class * p.lane_offset) % lanes;
                visit(class, round * p.groups * lanes + i);
            }
        }
    }
}

/// Executes the dispatch with this number.
pub type Script = Box<dyn Fn(u64, &mut Memories<'_>) -> SubmissionEnd>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionEnd {
    Ends,
    Hangs,
    /// The device is lost.
    Lost,
}

/// A wrong change of memory that the host reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// A result changes after the host has read it.
    LateResult,
    /// An initial value changes before the device copies it.
    InitialValue,
}

pub struct FakeDevice {
    pub identity: Identity,
    pub capabilities: Capabilities,
    pub can_set_workgroups: bool,
    /// True if it executes submissions, whatever its capabilities are.
    pub executes: bool,
    pub script: Script,
    /// Memory of the host that the device changes wrongly.
    pub host_fault: Option<HostFault>,
    pub poll_duration: Duration,
    pub submissions: Cell<u64>,
    /// The parameters of each submission.
    pub dispatch_parameters: RefCell<Vec<Parameters>>,
    /// The plan that was prepared last.
    pub plan: RefCell<Plan>,
    /// The push constants of memory stress, which follow the parameters of each dispatch.
    pub stress: RefCell<Vec<Vec<u8>>>,
    /// The number of prepared plans that were destroyed while in flight.
    pub destroyed_in_flight: Cell<u64>,
}

impl FakeDevice {
    /// Creates a device that runs `script` for each dispatch.
    pub fn new(
        is_cpu: bool,
        script: impl Fn(u64, &mut Memories<'_>) -> SubmissionEnd + 'static,
    ) -> FakeDevice {
        FakeDevice {
            identity: Identity { name: "fake".into(), kind: "other".into(), ..Identity::default() },
            capabilities: Capabilities {
                executes: true,
                is_cpu,
                subgroup_size: 4,
                max_workgroup_invocations: 128,
                max_workgroups: 65_535,
                max_storage_buffer_bytes: 1 << 20,
                max_storage_buffers: 8,
                max_push_constant_bytes: 128,
                ..Capabilities::default()
            },
            can_set_workgroups: true,
            executes: true,
            script: Box::new(script),
            host_fault: None,
            poll_duration: Duration::ZERO,
            submissions: Cell::default(),
            dispatch_parameters: RefCell::default(),
            plan: RefCell::default(),
            stress: RefCell::default(),
            destroyed_in_flight: Cell::default(),
        }
    }

    /// Creates a device that executes every role.
    pub fn conforming(is_cpu: bool) -> FakeDevice {
        FakeDevice::new(is_cpu, |_, memories| {
            execute_all_roles(memories);
            SubmissionEnd::Ends
        })
    }
}

pub fn execute_all_roles(memories: &mut Memories<'_>) {
    let (parameters, workgroups) = (memories.parameters, memories.workgroups);
    let counters = &memories.rendezvous[..32 * parameters.groups as usize];
    assert!(counters.iter().all(|word| *word == 0), "the counters start at zero");
    for_each_role(&parameters, workgroups, |role, instance| execute_role(memories, role, instance));
}

impl Device for FakeDevice {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        plan.validate()?;
        self.plan.replace(plan.clone());
        for buffer in &plan.buffers {
            assert!(buffer.words * 4 <= self.capabilities.max_storage_buffer_bytes, "{}", buffer.name);
        }
        let buffers = plan.buffers.iter().map(|buffer| vec![0xcccc_cccc; buffer.words as usize]).collect();
        Ok(Box::new(FakePrepared {
            device: self,
            plan: plan.clone(),
            buffers,
            in_flight: None,
            result_reads: 0,
        }))
    }
}

/// Returns the receipt of a kernel whose bindings have these lengths and which reads these salts: it reads its
/// identity and the buffers that it measures from the module.
fn receipt(words: &[u32], lengths: &[u32], salts: &[u32], parameters: &Parameters) -> u32 {
    let name = ["iden", "tity"].map(|part| u32::from_le_bytes(part.as_bytes().try_into().unwrap()));
    let (mut identity, mut value, mut binding_of, mut measured) = (None, 0, BTreeMap::new(), Vec::new());
    let mut rest = words.get(5..).unwrap_or_default();
    while let [first, ..] = rest {
        let (instruction, next) = rest.split_at((*first >> 16).max(1) as usize);
        rest = next;
        match (first & 0xffff, &instruction[1..]) {
            // OpName, OpConstant, OpDecorate with Binding, OpArrayLength.
            (5, [id, word, more, 0]) if [*word, *more] == name => identity = Some(*id),
            (43, [_, id, number]) if Some(*id) == identity => value = *number,
            (71, [id, 33, number]) => drop(binding_of.insert(*id, *number as usize)),
            (68, [_, _, buffer, _]) => measured.push(lengths[binding_of[buffer]]),
            _ => {}
        }
    }
    measured.extend(salts);
    parameters.receipt(value, &measured)
}

struct FakePrepared<'d> {
    device: &'d FakeDevice,
    plan: Plan,
    buffers: Vec<Vec<u32>>,
    in_flight: Option<SubmissionEnd>,
    /// Reads of the results of the last submission.
    result_reads: u32,
}

impl FakePrepared<'_> {
    fn host_buffer_index(&self, buffer: BufferId) -> Result<usize, DeviceError> {
        let number = buffer.0 as usize;
        let hidden = match self.plan.buffers[number].memory {
            BufferMemory::Device => !self.device.capabilities.is_cpu,
            memory => memory == BufferMemory::Private,
        };
        if self.in_flight.is_some() {
            return Err(DeviceError::Busy);
        }
        if hidden { Err(DeviceError::Unsupported("host access".into())) } else { Ok(number) }
    }
}

impl Prepared for FakePrepared<'_> {
    fn submit(&mut self) -> Result<(), DeviceError> {
        if self.in_flight.is_some() {
            return Err(DeviceError::Busy);
        }
        let mut end = SubmissionEnd::Ends;
        self.result_reads = 0;
        for step in self.plan.steps.clone() {
            match step {
                PlanStep::Fill { buffer, value, .. } => self.buffers[buffer.0 as usize].fill(value),
                PlanStep::Copy { from, to, .. } => {
                    let source = from.0 as usize;
                    let is_initial = self.plan.buffers[source].name == "initial values";
                    if is_initial && self.device.host_fault == Some(HostFault::InitialValue) {
                        self.buffers[source][0] = 5;
                    }
                    let words = self.buffers[source].clone();
                    self.buffers[to.0 as usize][..words.len()].copy_from_slice(&words);
                }
                PlanStep::Dispatch { bindings, push_constants, .. }
                    if push_constants.len() == shaders::canary::PUSH_CONSTANT_BYTES as usize =>
                {
                    if self.device.executes {
                        let input = u32::from_le_bytes(push_constants[..4].try_into().unwrap());
                        self.buffers[bindings[0].0 as usize][2..4]
                            .copy_from_slice(&shaders::canary::expected_answer(input));
                    }
                }
                PlanStep::Dispatch { bindings, push_constants, .. }
                    if push_constants.len() == shaders::checksum::PUSH_CONSTANT_BYTES as usize =>
                {
                    let (range, place, salt) =
                        shaders::checksum::parse_push_constants(&push_constants).unwrap();
                    let [words, sums] = [0, 1].map(|binding| bindings[binding].0 as usize);
                    let sum = range.checksum(&self.buffers[words], salt).unwrap();
                    let word = &mut self.buffers[sums][place as usize];
                    *word = word.wrapping_add(sum);
                }
                PlanStep::Dispatch { workgroups, push_constants, kernel, bindings, .. } => {
                    if push_constants.len() == StressParameters::BYTES as usize {
                        // The stress dispatch on another queue.
                        continue;
                    }
                    let (first, rest) = push_constants.split_at(Parameters::BYTES as usize);
                    let parameters = parse_parameters(first);
                    self.device.stress.borrow_mut().push(rest.to_vec());
                    self.device.dispatch_parameters.borrow_mut().push(parameters);
                    let number = self.device.submissions.replace(self.device.submissions.get() + 1);
                    let find =
                        |name| self.plan.buffers.iter().position(|buffer| buffer.name == name).unwrap();
                    let numbers = ["locations", "results", "rendezvous"].map(find);
                    let mut memories = numbers.map(|number| std::mem::take(&mut self.buffers[number]));
                    let [locations, results, rendezvous] = &mut memories;
                    // The salts are in the instance after the last one. The kernel reads one for each binding.
                    let after = 4 * parameters.groups * parameters.rounds * parameters.stride;
                    let bound = bindings.iter().filter(|buffer| buffer.0 as usize == numbers[0]);
                    let salts: Vec<u32> = bound.map(|_| locations[after as usize]).collect();
                    let mut own = Memories { parameters, workgroups, locations, results, rendezvous };
                    end = (self.device.script)(number, &mut own);
                    // The script omits the workgroups of memory stress.
                    let classes = (own.workgroups / parameters.groups) as usize;
                    let overflow_word = shaders::contract::overflow_word(classes as u32) as usize;
                    let overflow = rendezvous[overflow_word];
                    rendezvous.fill(2);
                    rendezvous[overflow_word] = overflow;
                    let places = rendezvous.chunks_exact_mut(32).take(parameters.groups as usize);
                    let lengths: Vec<u32> =
                        self.plan.buffers.iter().map(|buffer| buffer.words as u32).collect();
                    let lengths: Vec<u32> = bindings.iter().map(|own| lengths[own.0 as usize]).collect();
                    let words = &self.plan.kernels[kernel.0 as usize].words;
                    for place in places.filter(|_| self.device.executes) {
                        place[1..][..classes].fill(receipt(words, &lengths, &salts, &parameters));
                    }
                    for (number, words) in numbers.into_iter().zip(memories) {
                        self.buffers[number] = words;
                    }
                }
                PlanStep::Barrier { .. }
                | PlanStep::CommandBuffer { .. }
                | PlanStep::ToHost { .. }
                | PlanStep::Submit { .. } => {}
                other => panic!("the runner needs no {other:?}"),
            }
        }
        self.in_flight = Some(end);
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Progress, DeviceError> {
        match self.in_flight {
            Some(SubmissionEnd::Hangs) => {
                std::thread::sleep(timeout.min(Duration::from_millis(1)));
                Ok(Progress::Running)
            }
            Some(SubmissionEnd::Lost) => Err(DeviceError::DeviceLost("vkWaitForFences")),
            Some(SubmissionEnd::Ends) | None => {
                std::thread::sleep(self.device.poll_duration);
                self.in_flight = None;
                Ok(Progress::Finished { device_time: None })
            }
        }
    }

    fn set_push_constants(&mut self, step: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        match &mut self.plan.steps[step] {
            PlanStep::Dispatch { push_constants, .. } => *push_constants = bytes.to_vec(),
            other => panic!("step {step} is {other:?}"),
        }
        Ok(())
    }

    fn set_workgroups(&mut self, step: usize, count: u32) -> Result<(), DeviceError> {
        if !self.device.can_set_workgroups {
            return Err(DeviceError::Unsupported("another number of workgroups".into()));
        }
        match &mut self.plan.steps[step] {
            PlanStep::Dispatch { workgroups, .. } => *workgroups = count,
            other => panic!("step {step} is {other:?}"),
        }
        Ok(())
    }

    fn read(&mut self, buffer: BufferId) -> Result<&[u32], DeviceError> {
        let number = self.host_buffer_index(buffer)?;
        if self.plan.buffers[number].name == "results for the host" {
            self.result_reads += 1;
            if self.device.host_fault == Some(HostFault::LateResult) && self.result_reads > 1 {
                self.buffers[number][0] ^= 1;
            }
        }
        Ok(&self.buffers[number])
    }

    fn write(&mut self, buffer: BufferId) -> Result<&mut [u32], DeviceError> {
        let number = self.host_buffer_index(buffer)?;
        Ok(&mut self.buffers[number])
    }
}

impl Drop for FakePrepared<'_> {
    fn drop(&mut self) {
        if self.in_flight == Some(SubmissionEnd::Hangs) {
            self.device.destroyed_in_flight.set(self.device.destroyed_in_flight.get() + 1);
        }
    }
}

fn parse_parameters(bytes: &[u8]) -> Parameters {
    let parameters = Parameters::from_bytes(bytes).unwrap();
    assert_eq!(parameters.to_bytes(), bytes);
    parameters
}
